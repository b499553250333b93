"""The DeepSpeed configs that differ between two states of a repository."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.checking.evidence import consumer_for, release_for
from dsmigrate.checking.job import facts
from dsmigrate.checking.recognise import SUFFIXES, is_config
from dsmigrate.diff.git import GitError, blobs, git, root_of
from dsmigrate.diff.job import Compared, Source, UnreadableError, Versions, compare
from dsmigrate.document import DocumentError, parse_bytes
from dsmigrate.editing.summary import summary
from dsmigrate.editing.view import View
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules import Effect, Settings, Severity
from dsmigrate.settings.diff import DiffSettings

_FILE = "100"
"""How the modes of files begin; links and submodules have others."""


class Status(enum.Enum):
    """What became of a config."""

    ADDED = "added"
    DELETED = "deleted"
    CHANGED = "changed"
    RENAMED = "renamed"
    COPIED = "copied"
    UNCHANGED = "unchanged"
    """Its text is the same, and the DeepSpeed release that is pinned is another one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A config of a range: ``old`` is None for one that was added, ``new`` for one that was deleted.

    The names of the sides are paths from the top of the repository, with ``/``.
    """

    status: Status
    old: Source | None
    new: Source | None

    @property
    def path(self) -> str:
        """Where it is; where it was if it is gone."""
        side = self.new or self.old
        return side.name if side is not None else ""

    @property
    def is_config(self) -> bool:
        """Whether name and keys say on either side that it is a DeepSpeed config."""
        return any(side is not None and _recognised(side) for side in (self.old, self.new))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is said about one config; ``compared`` is None where there is one side only, or an ``error``.

    ``note`` is what a config that comes or goes trains with: "ZeRO-3 · bf16 · batch 64".
    """

    entry: Entry
    compared: Compared | None
    error: str = ""
    note: str = ""

    @property
    def title(self) -> str:
        """The file, with the name it had before."""
        old, new = self.entry.old, self.entry.new
        if self.entry.status in {Status.ADDED, Status.DELETED} or old is None or new is None or old.name == new.name:
            return self.entry.path
        return f"{old.name} → {new.name}"

    @property
    def verdict(self) -> str:
        """One line about it, without a period at its end."""
        if self.compared is not None:
            return self.compared.result.verdict
        return (
            f"Cannot be compared: {self.error}"
            if self.error
            else f"The config is {self.entry.status.value}: {self.note}"
        )

    def fails(self, least: str) -> bool:
        """Return whether it is at least as severe as ``least``; a config that comes or goes is an info."""
        if self.compared is not None:
            return self.compared.fails(least)
        return bool(self.error) or least == "info"


def changed(revisions: str, folder: Path, paths: Sequence[str] = ()) -> tuple[Entry, ...]:
    """Return every config that a range changes, in the order of the paths.

    ``revisions`` is what ``git diff`` takes: ``BASE...HEAD`` (since they parted), ``BASE..HEAD``, or one revision,
    which is compared with the working tree. ``paths`` limits it, relative to ``folder``. A file is a config
    if its name and keys say so on either side. Raises GitError.
    """
    if revisions.startswith("-") or not revisions.strip("."):
        raise GitError(f"{revisions} is no range of revisions; write BASE...HEAD")
    top = root_of(folder)
    if top is None and ".." not in revisions:
        raise GitError(
            f"{revisions} alone is compared with the working tree, and this repository is bare; write BASE...HEAD"
        )
    listed = git(
        folder,
        *("diff", "--raw", "-z", "--no-abbrev", "--no-relative", "-M", "-C"),
        *(revisions, "--", *(f":(top,icase)*{suffix}" for suffix in sorted(SUFFIXES))),
    )
    rows = [row for row in _rows(listed) if Path(row.path).suffix.lower() in SUFFIXES]
    if paths:  # afterwards, as git finds no rename across a limit
        names = git(folder, "diff", "--name-only", "-z", "--no-relative", "--no-renames", revisions, "--", *paths)
        within = set(os.fsdecode(names).split("\0"))
        rows = [row for row in rows if row.path in within or (row.letter == "R" and row.old_path in within)]
    contents = _contents(rows, folder, top)
    entries = (_entry(row, contents, folder if top is None else top) for row in rows)
    return tuple(sorted((entry for entry in entries if entry.is_config), key=lambda entry: entry.path))


def compare_all(
    entries: Sequence[Entry], settings: DiffSettings, versions: Versions | None = None
) -> tuple[Outcome, ...]:
    """Return what is said about each config; a side that cannot be read becomes the ``error`` of its outcome."""
    return tuple(_outcome(entry, settings, versions) for entry in entries)


def _outcome(entry: Entry, settings: DiffSettings, versions: Versions | None) -> Outcome:
    if entry.old is None or entry.new is None:
        return _alone(entry, settings, versions or Versions())
    try:
        return Outcome(entry, compare(entry.old, entry.new, settings, versions))
    except UnreadableError as error:
        return Outcome(entry, None, str(error))


def _alone(entry: Entry, settings: DiffSettings, versions: Versions) -> Outcome:
    """Return the outcome of a config with one side: what it comes to."""
    side = entry.new or entry.old
    assert side is not None  # noqa: S101 - an entry has a side
    try:
        document = parse_bytes(side.data)
    except DocumentError as error:
        return Outcome(entry, None, f"{side.name}: {error}")
    asked_for = versions.old if entry.new is None else versions.new
    release = asked_for or settings.check.version or release_for(side.folder or Path()).value
    consumer = settings.check.consumer or Consumer(consumer_for(document, side.folder).value)
    asked = Settings(version=release, consumer=consumer, facts=facts(settings.check))
    view = View(document, asked, folder=side.folder)
    is_refused = entry.new is not None and any(
        finding.severity is Severity.ERROR and finding.effect is Effect.REJECTED for finding in view.findings
    )
    note = summary(view)
    return Outcome(entry, None, note=say("{note}. DeepSpeed rejects it", note=note) if is_refused else note)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of ``git diff --raw``; an id of zeros is a file of the working tree, a side without a file has none."""

    letter: str
    old: str
    new: str
    old_path: str
    path: str


def _rows(listed: bytes) -> list[_Row]:
    words = iter(os.fsdecode(listed).split("\0"))
    rows = []
    for head in words:
        if not head:
            continue
        old_mode, new_mode, old, new, letter = head.removeprefix(":").split(" ")
        old_path = path = next(words)
        if letter[0] in "RC":
            path = next(words)
        old, new = (found if mode.startswith(_FILE) else "" for found, mode in ((old, old_mode), (new, new_mode)))
        if old or new:
            rows.append(_Row(letter[0], old, new, old_path, path))
    return rows


def _contents(rows: Sequence[_Row], folder: Path, top: Path | None) -> dict[str, bytes]:
    """Return the contents by id; those of the working tree by path."""
    ids = list(dict.fromkeys(found for row in rows for found in (row.old, row.new) if found.strip("0")))
    contents = dict(zip(ids, blobs(folder, ids), strict=True))
    for row in rows:
        if row.new and not row.new.strip("0") and top is not None:
            try:
                contents[row.path] = read(top / row.path)
            except SourceError as error:
                raise GitError(f"{row.path}: {error.message}") from None
    return contents


def _entry(row: _Row, contents: dict[str, bytes], top: Path) -> Entry:
    old = Source(row.old_path, contents[row.old], (top / row.old_path).parent) if row.old else None
    new = None
    if row.new:
        data = contents[row.new] if row.new.strip("0") else contents[row.path]
        new = Source(row.path, data, (top / row.path).parent)
    if old is None or new is None:
        return Entry(Status.DELETED if new is None else Status.ADDED, old, new)
    return Entry({"R": Status.RENAMED, "C": Status.COPIED}.get(row.letter, Status.CHANGED), old, new)


def _recognised(side: Source) -> bool:
    try:
        return is_config(side.name, parse_bytes(side.data))
    except DocumentError:
        return False
