"""What a range of commits does to DeepSpeed configs: to those it changes, and to all whose release it changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dsmigrate.checking.recognise import SUFFIXES
from dsmigrate.diff.changed import Entry, Outcome, Status, changed, compare_all
from dsmigrate.diff.git import blobs, git, root_of
from dsmigrate.diff.job import Source, Versions
from dsmigrate.diff.model import Severity
from dsmigrate.diff.pins import Ends, moved
from dsmigrate.settings.diff import DiffSettings

_LARGEST = 1 << 20
"""Bytes of a file that is looked at although nobody changed it."""


def compare_range(
    revisions: str,
    folder: Path,
    settings: DiffSettings,
    versions: Versions | None = None,
    paths: Sequence[str] = (),
) -> tuple[Outcome, ...]:
    """Return what is said about each config that a range changes; see ``changed`` for the arguments.

    Where the range moves a pin of DeepSpeed, and no release is asked for, each side is of the release that its end of
    the range pins, and configs that stay as they are come in if that does something to them. Raises GitError.
    """
    entries = changed(revisions, folder, paths)
    asked = versions or Versions()
    if settings.check.version is not None or asked.old is not None or asked.new is not None:
        return compare_all(entries, settings, asked)
    ends = moved(folder, root_of(folder), revisions)
    if ends is None:
        return compare_all(entries, settings)
    every = [*entries, *_unchanged(ends, paths)]
    releases = ends.versions(_directory(entry) for entry in every)
    outcomes = [
        outcome
        for entry in every
        if entry.status is not Status.UNCHANGED or _is_moved(releases[_directory(entry)])
        for outcome in compare_all((entry,), settings, releases[_directory(entry)])
    ]
    shown = (outcome for outcome in outcomes if outcome.entry.status is not Status.UNCHANGED or _acts(outcome))
    return tuple(sorted(shown, key=lambda outcome: outcome.entry.path))


def _is_moved(versions: Versions) -> bool:
    return versions.old != versions.new


def _acts(outcome: Outcome) -> bool:
    return outcome.compared is not None and outcome.compared.result.worst is not Severity.NONE


def _directory(entry: Entry) -> str:
    """Return the folder of a config from the top of the repository, "" for the top itself."""
    parent = str(PurePosixPath(entry.path).parent)
    return "" if parent == "." else parent


def _unchanged(ends: Ends, paths: Sequence[str]) -> Iterator[Entry]:
    """Yield the configs that both ends of a range have alike."""
    where = ("--full-name", ends.old, "--", *paths) if paths else ("--full-tree", ends.old)
    listed = git(ends.folder, "ls-tree", "-r", "-z", "-l", *where)
    files: dict[str, str] = {}
    for line in filter(None, os.fsdecode(listed).split("\0")):
        head, _, path = line.partition("\t")
        mode, kind, blob, size = head.split()
        suffix = PurePosixPath(path).suffix.lower()
        if kind == "blob" and mode.startswith("100") and suffix in SUFFIXES and path not in ends.touched:
            files.update({path: blob} if int(size) <= _LARGEST else {})
    top = ends.top or ends.folder
    for (path, _), data in zip(files.items(), blobs(ends.folder, files.values()), strict=True):
        side = Source(path, data, (top / path).parent)
        entry = Entry(Status.UNCHANGED, side, side)
        if entry.is_config:
            yield entry
