"""Writes over a set of files that all happen or all do not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from dsmigrate.languages import say

_PREFIX = ".dsmigrate-"
_MISSING = None


class WriteError(OSError):
    """A set of writes was not done; every file is as it was. ``path`` is where it failed."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Write:
    """One file to write.

    ``expected`` is what the file held when its new content was made, None for a file that did not exist; a file that
    holds something else by now is not overwritten. ``root`` is the directory that no symlink may lead out of.
    """

    path: Path
    data: bytes
    expected: bytes | None
    root: Path


@dataclass(slots=True)
class _Staged:
    target: Path
    fresh: Path
    backup: Path | None = None
    done: bool = field(default=False)


def write_all(writes: Sequence[Write]) -> None:
    """Write every file of the set, or none.

    Each content is first stored, flushed to disk, beside its target with the target's mode; only when all are stored
    are they renamed into place. A failure or an interrupt on the way renames the former files back. Symlinks within
    ``root`` are written through. Missing directories are made, and removed again on failure.

    Raises WriteError for a target outside of its root, a read-only target, a target that has changed meanwhile, and
    whatever the file system refuses (a full disk, no permission).
    """
    made: list[Path] = []
    staged: list[_Staged] = []
    try:
        for write in writes:
            target = _target_of(write)
            _make_parents(target, made)
            staged.append(_stage(write, target))
    except BaseException:
        _roll_back(staged, made)
        raise
    with _signals_held():
        try:
            _commit(staged)
        except BaseException:
            _roll_back(staged, made)
            raise
        _remove_leftovers(staged)


def _target_of(write: Write) -> Path:
    path = Path(os.path.realpath(write.path))
    root = Path(os.path.realpath(write.root))
    if not path.is_relative_to(root):
        message = say(
            "a symlink leads out of {root}, to {path}; nothing is written through it", root=write.root, path=path
        )
        raise WriteError(write.path, message)
    try:
        current = _content(path)
        if current is not None and not _is_writable(path):
            raise WriteError(write.path, say("the file is read-only"))
    except OSError as error:
        raise _refused(write.path, error) from error
    if current != write.expected:
        message = say("the file has changed since it was read") if current is not None else say("it is gone")
        raise WriteError(write.path, message)
    return path


def _content(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WriteError(path, say("not a regular file"))
        return path.read_bytes()
    except FileNotFoundError:
        return _MISSING


def _is_writable(path: Path) -> bool:
    """Ask the mode too: root may write anything, and a read-only mark still means hands off."""
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _make_parents(target: Path, made: list[Path]) -> None:
    missing = []
    parent = target.parent
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    if not _is_writable(parent):
        raise WriteError(target, say("the directory {parent} is read-only", parent=parent))
    try:
        for folder in reversed(missing):
            folder.mkdir()
            made.append(folder)
    except OSError as error:
        raise _refused(target, error) from error


def _stage(write: Write, target: Path) -> _Staged:
    fresh: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=target.parent)
        fresh = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(write.data)
            file.flush()
            os.fsync(file.fileno())
        staged = _Staged(target, fresh)
        if write.expected is None:
            fresh.chmod(0o666 & ~_umask())
        else:
            _take_over(target, fresh)
            staged.backup = _back_up(target)
    except BaseException as error:
        if fresh is not None:
            fresh.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _refused(write.path, error) from error
        raise
    return staged


def _take_over(target: Path, fresh: Path) -> None:
    """Give the new file the mode, owner and extended attributes of the old one, as far as permitted."""
    found = target.stat()
    with contextlib.suppress(OSError, AttributeError):
        os.chown(fresh, found.st_uid, found.st_gid)
    with contextlib.suppress(OSError):
        shutil.copystat(target, fresh)
    os.utime(fresh)
    fresh.chmod(stat.S_IMODE(found.st_mode))


def _back_up(target: Path) -> Path:
    """Keep the old file under a second name, which costs no space where the file system has hard links."""
    handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=".old", dir=target.parent)
    os.close(handle)
    backup = Path(name)
    try:
        backup.unlink()
        try:
            os.link(target, backup)
        except OSError:
            shutil.copy2(target, backup)
    except BaseException:
        backup.unlink(missing_ok=True)
        raise
    return backup


def _commit(staged: Sequence[_Staged]) -> None:
    for item in staged:
        item.done = True
        try:
            os.replace(item.fresh, item.target)  # noqa: PTH105 - one name to plant faults in
        except OSError as error:
            raise _refused(item.target, error) from error
    for folder in {item.target.parent for item in staged}:
        _flush(folder)


def _roll_back(staged: Sequence[_Staged], made: Sequence[Path]) -> None:
    for item in reversed(staged):
        if not item.done or item.fresh.exists():
            continue
        if item.backup is None:
            item.target.unlink(missing_ok=True)
        else:
            item.backup.replace(item.target)
    _remove_leftovers(staged)
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_leftovers(staged: Sequence[_Staged]) -> None:
    for item in staged:
        with contextlib.suppress(OSError):
            item.fresh.unlink(missing_ok=True)
        if item.backup is not None:
            with contextlib.suppress(OSError):
                item.backup.unlink(missing_ok=True)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let a signal that would end the process wait until the renames, a matter of microseconds, are through."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    former = {number: signal.signal(number, lambda *caught: held.append(caught)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number, _ in held:
            signal.raise_signal(number)


def _flush(folder: Path) -> None:
    """Make the renames durable, where a directory can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _refused(path: Path, error: OSError) -> WriteError:
    return error if isinstance(error, WriteError) else WriteError(path, error.strerror or str(error))
