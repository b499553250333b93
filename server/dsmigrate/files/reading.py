"""Reading of input files: regular files of a sane size, as bytes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from dsmigrate.files.text import SourceError
from dsmigrate.languages import say

MAX_BYTES = 4 * 1024 * 1024
"""The largest file that is read; the largest real training scripts are below 0.3 MB."""

STDIN = "-"


class MissingFileError(SourceError):
    """There is no such file."""


def read(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises MissingFileError when there is no such file, SourceError when it is no regular file, may not be read, or
    exceeds ``MAX_BYTES``.
    """
    try:
        found = path.stat()
        wrong = _wrong_with(found)
        data = b"" if wrong else path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(say("no such file")) from None
    except OSError as error:
        raise SourceError(say("cannot be read: {error}", error=error.strerror or error)) from None
    except ValueError as error:  # a NUL in the path
        raise SourceError(say("cannot be read: {error}", error=error)) from None
    if wrong:
        raise SourceError(wrong)
    return _limited(data)


def read_stdin() -> bytes:
    """Return what standard input holds; raises SourceError beyond ``MAX_BYTES``."""
    return _limited(sys.stdin.buffer.read(MAX_BYTES + 1))


def _wrong_with(found: os.stat_result) -> str:
    if stat.S_ISDIR(found.st_mode):
        return say("this is a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        return say("not a regular file")
    return _too_large(found.st_size) if found.st_size > MAX_BYTES else ""


def _limited(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise SourceError(_too_large(len(data)))
    return data


def _too_large(size: int) -> str:
    mebibyte = 1024 * 1024
    return say(
        "the file has {size} MiB; files up to {most} MiB are read",
        size=f"{size / mebibyte:.1f}",
        most=MAX_BYTES // mebibyte,
    )
