"""git's external diff driver: the two versions of a file that git hands over, compared or, if no config, as patch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.diff.changed import Entry, Outcome, Status, compare_all
from dsmigrate.diff.job import Source
from dsmigrate.files.diff import named, unified
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.settings.diff import DiffSettings

_UNMERGED = 1
_COUNTS = (_UNMERGED, 7, 9)


class DriverError(ValueError):
    """The arguments are not those of an external diff driver."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What the driver has to say: an outcome, or a text where there is nothing to compare as configs."""

    outcome: Outcome | None
    text: str = ""


def drive(arguments: Sequence[str], settings: DiffSettings, *, as_patch: bool = False) -> Driven:
    """Compare what git passes: path, old file, id, mode, new file, id, mode, and after a rename new path and header.

    An unmerged path comes alone. Files that are no configs, or cannot be read as such, give a unified diff, so that
    the driver may stand for every ``*.json``; all do with ``as_patch``. Raises DriverError for other arguments.
    """
    if len(arguments) not in _COUNTS:
        raise DriverError(
            f"git passes {_UNMERGED}, 7 or 9 arguments to a diff driver, and here are {len(arguments)}: "
            'set diff.deepspeed.command to "dsmigrate diff --git-driver"'
        )
    path = arguments[0]
    if len(arguments) == _UNMERGED:
        return Driven(None, f"* Unmerged path {path}\n")
    renamed = arguments[7] if len(arguments) > 7 else path
    try:
        old, new = _side(path, arguments[1]), _side(renamed, arguments[4])
    except SourceError as error:
        return Driven(None, f"{path}: {error.message}\n")
    entry = Entry(_status(old, new, is_renamed=renamed != path), old, new)
    header = arguments[8] if len(arguments) > 8 else ""
    if as_patch or not entry.is_config:
        return Driven(None, patch(entry, header))
    outcome = compare_all((entry,), settings)[0]
    return Driven(None, f"{outcome.error}\n{patch(entry, header)}") if outcome.error else Driven(outcome)


def patch(entry: Entry, header: str) -> str:
    """Return the unified diff of a file's lines, after a rename with the lines of git's ``header``."""
    texts = [None if side is None else side.data.decode("utf-8", "replace") for side in (entry.old, entry.new)]
    if any(side is not None and b"\0" in side.data for side in (entry.old, entry.new)):
        return f"Binary files of {entry.path} differ\n"
    if texts[1] is None:
        return unified(texts[0], "", entry.path).replace(f"+++ b/{entry.path}", "+++ /dev/null", 1)
    if entry.status is not Status.RENAMED or entry.old is None:
        return unified(texts[0], texts[1], entry.path)
    names = f"diff --git {named('a', entry.old.name)} {named('b', entry.path)}"
    lines = "".join(f"{line}\n" for line in (names, *header.splitlines()) if not line.startswith("index "))
    return lines + unified(texts[0], texts[1], entry.path, before=entry.old.name)


def _side(name: str, file: str) -> Source | None:
    """Return what a temporary file of git's holds; ``/dev/null`` (``nul`` on Windows) is a side without a file."""
    if file in {"/dev/null", os.devnull}:
        return None
    return Source(name, read(Path(file)), Path(name).parent)


def _status(old: Source | None, new: Source | None, *, is_renamed: bool) -> Status:
    if old is None:
        return Status.ADDED
    if new is None:
        return Status.DELETED
    return Status.RENAMED if is_renamed else Status.CHANGED
