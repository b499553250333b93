"""Reading of files that somebody else wrote: regular files of a sane size, as bytes, without waiting for any.

A repository can hold a link to ``/dev/zero`` or a named pipe under any name, so every file of a user is read here
(``tests/files/test_reading.py`` looks for others).
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dsmigrate.files.text import SourceError
from dsmigrate.languages import say

MAX_BYTES = 4 * 1024 * 1024
"""The largest file that is read; the largest real training scripts are below 0.3 MB."""

STDIN = "-"
_OPEN = os.O_RDONLY
for _flag in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):  # none of them is everywhere
    _OPEN |= getattr(os, _flag, 0)


class MissingFileError(SourceError):
    """There is no such file."""


def read(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises MissingFileError when there is no such file, SourceError when it is no regular file, may not be read, or
    has more than ``most`` bytes.
    """
    with opened(path) as file, _said():
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > most else file.read(most + 1) or b""  # None where /proc has nothing to say yet
    check_size(max(size, len(data)), most)
    return data


def read_if_there(path: Path) -> bytes | None:
    """Return the bytes of a regular file, None where there is no such file; raises SourceError as ``read`` does."""
    try:
        return read(path)
    except MissingFileError:
        return None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of any size, for who reads a part of it.

    Raises as ``read`` does while opening; what fails afterwards is the OSError of the system.
    """
    with _said():
        _refuse(os.stat(path))  # noqa: PTH116 - of devices, opening alone can do something
        file = os.fdopen(os.open(path, _OPEN), "rb")
    with file:
        _refuse(os.fstat(file.fileno()))
        yield file


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Turn what the system says into a SourceError."""
    try:
        yield
    except FileNotFoundError:
        raise MissingFileError(say("no such file")) from None
    except OSError as error:
        raise SourceError(say("cannot be read: {error}", error=error.strerror or error)) from None
    except SourceError:
        raise
    except ValueError as error:  # a NUL in the path
        raise SourceError(say("cannot be read: {error}", error=error)) from None


def read_stdin() -> bytes:
    """Return what standard input holds; raises SourceError beyond ``MAX_BYTES``."""
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    check_size(len(data), MAX_BYTES)
    return data


def _refuse(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise SourceError(say("this is a directory, not a file"))
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(say("not a regular file"))


def check_size(size: int, most: int) -> None:
    """Raise SourceError when a file has more than ``most`` bytes."""
    mebibyte = 1024 * 1024
    if size > most:
        raise SourceError(
            say(
                "the file has {size} MiB; files up to {most} MiB are read",
                size=f"{size / mebibyte:.1f}",
                most=most // mebibyte,
            )
        )
