"""Writes over a set of files that all happen or all do not."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from dsmigrate.files.exchange import exchange
from dsmigrate.files.journal import PREFIX, JournalError, Planned, digest, journal
from dsmigrate.languages import say

_MISSING = None


class WriteError(OSError):
    """A set of writes was not done; every file is as it was. ``path`` is where it failed."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message

    def add(self, more: str) -> None:
        """Say more of what has become of the files."""
        self.message = f"{self.message}; {more}"
        self.args = (f"{self.path}: {self.message}",)


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
    """A file of the set: ``fresh`` has the new content, and the old one when it is ``done``."""

    write: Write
    target: Path
    fresh: Path
    done: bool = field(default=False)


def write_all(writes: Sequence[Write]) -> None:
    """Write every file of the set, or none.

    Each content is first stored, flushed to disk, beside its target with the target's mode; only when all are stored
    do they change places with their targets. What was in a target is compared with what was expected once more when it
    has left its place: an edit that came in between goes back. A failure or an interrupt on the way puts the former
    files back; after a kill the journal tells what to put back. Symlinks within ``root`` are written through. Missing
    directories are made, and removed again on failure.

    Raises WriteError for a target outside of its root, a read-only target, one with other hard links, a target that has
    changed meanwhile, a folder in which another run is writing, and whatever the file system refuses (a full disk, no
    permission).
    """
    if not writes:
        return
    made: list[Path] = []
    staged: list[_Staged] = []
    with contextlib.ExitStack() as held:
        try:
            token = secrets.token_hex(8)
            for number, write in enumerate(writes):
                target = _target_of(write)
                staged.append(_Staged(write, target, target.with_name(f"{PREFIX}{token}-{number}")))
            for item in staged:
                _make_parents(item.target, made)
            _take_journals(held, staged)
            for item in staged:
                _stage(item)
        except BaseException:
            _roll_back(staged, made)
            raise
        with _signals_held():
            try:
                _commit(staged)
            except BaseException as error:
                _roll_back(staged, made, error)
                raise
            _remove_leftovers(staged)


def _take_journals(held: contextlib.ExitStack, staged: Sequence[_Staged]) -> None:
    """Write down what is about to be done: in the folder that holds all targets, else in that of each."""
    folders = [item.target.parent for item in staged]
    try:
        common = Path(os.path.commonpath(folders))
        is_one = _is_writable(common)
    except ValueError:  # several drives
        is_one = False
    for folder in [common] if is_one else sorted(set(folders)):
        planned = [
            Planned(
                item.target,
                item.fresh,
                None if item.write.expected is None else digest(item.write.expected),
                digest(item.write.data),
            )
            for item in staged
            if is_one or item.target.parent == folder
        ]
        try:
            held.enter_context(journal(folder, planned))
        except JournalError as error:
            raise WriteError(staged[0].write.path, str(error)) from None
        except OSError as error:
            raise _refused(staged[0].write.path, error) from error


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
        if current is not None and (names := path.stat().st_nlink) > 1:
            message = say("the file has {names} hard links, and the others would keep the old text", names=names)
            raise WriteError(write.path, message)
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


def _stage(item: _Staged) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(item.fresh, flags, 0o600), "wb") as file:
            file.write(item.write.data)
            file.flush()
            os.fsync(file.fileno())
        if item.write.expected is None:
            item.fresh.chmod(0o666 & ~_umask())
        else:
            _take_over(item.target, item.fresh)
    except OSError as error:
        raise _refused(item.write.path, error) from error


def _take_over(target: Path, fresh: Path) -> None:
    """Give the new file the mode, owner and extended attributes of the old one, as far as permitted."""
    found = target.stat()
    with contextlib.suppress(OSError, AttributeError):
        os.chown(fresh, found.st_uid, found.st_gid)
    with contextlib.suppress(OSError):
        shutil.copystat(target, fresh)
    os.utime(fresh)
    fresh.chmod(stat.S_IMODE(found.st_mode))


def _commit(staged: Sequence[_Staged]) -> None:
    for item in staged:
        try:
            if item.write.expected is None:
                _link(item)
                item.done = True
                continue
            exchange(item.fresh, item.target)
            item.done = True
            changed = _content(item.fresh) != item.write.expected
        except FileExistsError:
            raise WriteError(item.write.path, say("the file has changed since it was read")) from None
        except FileNotFoundError:
            raise WriteError(item.write.path, say("it is gone")) from None
        except OSError as error:
            raise _refused(item.write.path, error) from error
        if changed:
            raise WriteError(item.write.path, say("the file has changed since it was read"))
    for folder in {item.target.parent for item in staged}:
        _flush(folder)


def _link(item: _Staged) -> None:
    """Give a new file its name, unless there is a file of that name by now."""
    try:
        os.link(item.fresh, item.target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with item.target.open("xb") as file:
            file.write(item.write.data)
        shutil.copymode(item.fresh, item.target)


def _roll_back(staged: Sequence[_Staged], made: Sequence[Path], error: BaseException | None = None) -> None:
    """Put back what was in the place of each file that is done.

    What somebody has saved in a file since then stays, and what the file had before stays beside it: the message of
    ``error`` says where.
    """
    kept: list[Path] = []
    for item in reversed(staged):
        if not item.done:
            continue
        if item.write.expected is None:
            if _hash_of(item.target) == digest(item.write.data):
                item.target.unlink()
        elif _hash_of(item.target) == digest(item.write.data):
            exchange(item.fresh, item.target)
        else:
            kept.append(item.fresh)
    _remove_leftovers([item for item in staged if item.fresh not in kept])
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir()
    if kept and isinstance(error, WriteError):
        error.add(
            say(
                "what was edited meanwhile stays, and what was there before is in {files}",
                files=", ".join(map(str, kept)),
            )
        )


def _hash_of(path: Path) -> str | None:
    try:
        current = _content(path)
    except OSError:
        return None
    return None if current is None else digest(current)


def _remove_leftovers(staged: Sequence[_Staged]) -> None:
    for item in staged:
        with contextlib.suppress(OSError):
            item.fresh.unlink(missing_ok=True)


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
