"""What a set of writes is about to do, written down first, so that one that is killed can be finished or undone.

A journal lies in the folder that holds all files of the set, and is gone when the set is through. Who writes holds a
lock on it, which ends with the process. A journal may have come with a repository, so nothing in it is believed:
it names files of its own folder and below, and a file is moved only while its content has the hash that is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from dsmigrate.files.exchange import KEPT, exchange
from dsmigrate.files.reading import MAX_BYTES, MissingFileError, read
from dsmigrate.files.text import SourceError
from dsmigrate.languages import say

NAME = ".dsmigrate-journal"
PREFIX = ".dsmigrate-"
_FRESH = re.compile(r"\.dsmigrate-[0-9a-f]{16}-\d{1,6}")
_MOST_FILES = 100_000
_LARGEST = 4 * MAX_BYTES
_UPWARD = 32
_BELOW = 20_000


class JournalError(Exception):
    """A journal cannot be taken, or does not hold; the message says why."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A file of a set: ``fresh`` lies beside ``target`` with the new content, and has the old one when it is done.

    ``old`` and ``new`` are SHA-256 in hexadecimal, ``old`` is None for a file that there was not.
    """

    target: Path
    fresh: Path
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of an interrupted set, or would: files by their path."""

    journal: Path
    finished: tuple[Path, ...] = ()
    undone: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()
    """Files that somebody has edited since, or that are gone: they stay as they are."""
    kept: tuple[Path, ...] = ()
    """What lies beside those: the content that they had."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of a content in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def journal(folder: Path, planned: Sequence[Planned]) -> Iterator[None]:
    """Hold the journal of a folder while the files of a set, all below it, are written.

    It stays if the process is killed, or if something of the set is left. Raises JournalError where another process
    writes there, or an interrupted set is to be recovered first; OSError.
    """
    rows = [
        {"target": one.target.relative_to(folder).as_posix(), "fresh": one.fresh.name, "old": one.old, "new": one.new}
        for one in planned
    ]
    text = json.dumps({"version": 1, "files": rows}).encode()
    with _locked(folder / NAME, make=True) as handle:
        if os.fstat(handle).st_size:
            raise JournalError(interrupted(folder / NAME))
        try:
            while text:
                text = text[os.write(handle, text) :]
            os.fsync(handle)
            yield
        finally:
            if not any(one.fresh.exists() for one in planned):
                with contextlib.suppress(OSError):  # then the next run finds that all is done
                    os.ftruncate(handle, 0)


def interrupted(path: Path) -> str:
    """Say what a journal is about."""
    return say("an interrupted run has left {path}: `dsmigrate recover` finishes or undoes it", path=path)


def found(folder: Path) -> Path | None:
    """Return the journal of an interrupted set in a folder or around it, None where there is none or it is held."""
    for place in (folder, *folder.parents)[:_UPWARD]:
        path = place / NAME
        if path.is_file() and not path.is_symlink() and path.stat().st_size and not _is_held(path):
            return path
        if (place / ".git").exists():
            return None
    return None


def all_found(folder: Path) -> list[Path]:
    """Return the journals of interrupted sets in a folder, below it and around it, sorted."""
    journals = set(filter(None, (found(folder),)))
    for count, (place, folders, files) in enumerate(os.walk(folder)):
        folders[:] = [name for name in folders if name not in {".git", "node_modules", "__pycache__"}]
        if NAME in files and not _is_held(path := Path(place, NAME)):
            journals.add(path)
        if count > _BELOW:
            break
    return sorted(journals)


def recover(path: Path, *, dry_run: bool = False) -> Recovered:
    """Finish the set of a journal if all of it was written, else undo it; with ``dry_run`` only say so.

    Raises JournalError where a process holds it or it does not hold, OSError for what the file system refuses.
    """
    with _locked(path, make=False) as handle:
        done = _recover(path, dry_run=dry_run)
        if not dry_run:
            os.ftruncate(handle, 0)
    return done


def _recover(path: Path, *, dry_run: bool) -> Recovered:
    if not path.stat().st_size:  # killed before anything was written down, and so before anything was done
        return Recovered(path)
    planned = _parsed(path)
    contents = [_hash(one.target) for one in planned]
    if all(now == one.new for one, now in zip(planned, contents, strict=True)):
        done = Recovered(path, finished=tuple(one.target for one in planned))
    else:
        done = Recovered(path)
        for one, now in zip(planned, contents, strict=True):
            done = _undo(one, now, done, dry_run=dry_run)
    if not dry_run:
        for name in (name for one in planned for name in _beside(one)):
            if name not in done.kept and _is_regular(name):
                name.unlink()
    return done


def _undo(one: Planned, now: str | None, done: Recovered, *, dry_run: bool) -> Recovered:
    """Give a target its old content, where it has the new one; ``now`` is the hash of what it has."""
    if now == one.old:
        return done
    former = next((name for name in _beside(one) if one.old is not None and _hash(name) == one.old), None)
    if now == one.new and (former is not None or one.old is None):
        if not dry_run and former is not None:
            exchange(former, one.target)
        elif not dry_run:
            one.target.unlink()
        return replace(done, undone=(*done.undone, one.target))
    return replace(done, left=(*done.left, one.target), kept=(*done.kept, *filter(None, (former,))))


def _beside(one: Planned) -> tuple[Path, Path]:
    """Return the names that a set gives to files beside a target."""
    return one.fresh, one.fresh.with_name(one.fresh.name + KEPT)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _hash(path: Path) -> str | None:
    """Return the hash of a regular file, None where there is none; a link is none."""
    try:
        return None if path.is_symlink() else digest(read(path, _LARGEST))
    except MissingFileError:
        return None
    except SourceError:
        return ""


def _parsed(path: Path) -> list[Planned]:
    """Return what a journal names, all of it below its folder and none of it behind a link."""
    unsound = JournalError(say("{path} does not hold, and nothing is done about it: remove it", path=path))
    try:
        written = json.loads(read(path, _LARGEST))
        rows = written["files"]
        if written["version"] != 1 or not isinstance(rows, list) or not 0 < len(rows) <= _MOST_FILES:
            raise unsound
        return [_planned(path.parent, row) for row in rows]
    except (SourceError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise unsound from None


def _planned(folder: Path, row: dict[str, Any]) -> Planned:
    name = PurePosixPath(row["target"])
    old, new = row["old"], row["new"]
    if name.is_absolute() or ".." in name.parts or not name.name or not _FRESH.fullmatch(row["fresh"]):
        raise ValueError(row)
    if not all(isinstance(known, str) and re.fullmatch("[0-9a-f]{64}", known) for known in (new, old or new)):
        raise ValueError(row)
    target = folder / name
    for above in (target, *target.parents):
        if above == folder:
            break
        if above.is_symlink():
            raise ValueError(row)
    return Planned(target, target.with_name(row["fresh"]), old, new)


@contextlib.contextmanager
def _locked(path: Path, *, make: bool) -> Iterator[int]:
    """Hold the lock of a journal; an empty one is removed afterwards."""
    flags = os.O_RDWR | (os.O_CREAT if make else 0)
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    while True:
        handle = os.open(path, flags, 0o600)
        is_regular = stat.S_ISREG(os.fstat(handle).st_mode)
        is_ours = is_regular and _lock(handle)
        if is_ours and _is_still(path, handle):
            break
        os.close(handle)
        if not is_regular:
            raise JournalError(say("{path} does not hold, and nothing is done about it: remove it", path=path))
        if not is_ours:
            raise JournalError(say("another run of dsmigrate is writing in {folder}", folder=path.parent))
        # Who held it has removed it meanwhile: there is a new one, or none.
    try:
        yield handle
    finally:
        is_empty = not os.fstat(handle).st_size
        if os.name == "nt":
            os.close(handle)  # first, as an open file is not removed
        if is_empty:
            with contextlib.suppress(OSError):
                path.unlink()
        if os.name != "nt":
            os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        now = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(handle))


def _lock(handle: int) -> bool:
    """Take the lock of an open file, which the system lets go with the process; False where another has it."""
    try:
        if os.name == "nt":
            import msvcrt  # noqa: PLC0415 - of Windows alone

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl  # noqa: PLC0415 - of Unix alone

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        return os.name != "nt" and error.errno is not None  # a file system without locks: go on without one
    return True


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not _lock(handle)
    finally:
        os.close(handle)
