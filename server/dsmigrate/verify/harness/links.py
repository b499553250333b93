"""Keeps the script's writing inside of the folder that it runs in.

The folder holds links to the large files of the original one. Python tells of every file before it opens it
(``sys.addaudithook``); a link that is about to be written is replaced by a copy, so that the original stays.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT


def detach(path: object, root: str) -> None:
    """Replace the link at ``path``, if it is one below ``root``, by a copy of what it leads to."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - resolve() would follow the link
    if not name.startswith(root + os.sep) or not os.path.islink(name):  # noqa: PTH114 - called at every open
        return
    target = Path(name).resolve()
    if target.is_dir():
        return
    Path(name).unlink()
    if target.is_file():
        shutil.copy2(target, name)


def is_full(path: object) -> bool:
    """Return whether the disk has no room for more of a file that could not be written to its end."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        with Path(path).open("ab", buffering=0) as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        return error.errno in {errno.ENOSPC, errno.EDQUOT}
    return False


def protect(root: str) -> None:
    """Watch everything that this process opens for writing."""

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and len(arguments) == 3 and writes(arguments[1], arguments[2]):
            detach(arguments[0], root)

    sys.addaudithook(watch)


def writes(mode: object, flags: object) -> bool:
    """Return whether a file is opened for writing, by the mode or the flags of its opening."""
    if isinstance(mode, str):
        return any(sign in mode for sign in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)
