"""Two names of files change places, so that what was under the one is never lost, whoever writes meanwhile."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS: the same number."""
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}
KEPT = ".old"
"""The end of the name that the old file has for a moment where the system cannot exchange names."""


def exchange(ours: Path, theirs: Path) -> None:
    """Let ``ours`` and ``theirs``, files of one folder, change places; raises OSError with both as they were.

    It is one step where the system has it (Linux, macOS). Elsewhere the old file has a third name, ``ours`` with
    ``.old``, for a moment, and what is saved in that moment under ``theirs`` is lost.
    """
    try:
        if _system_exchanges(ours, theirs):
            return
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    kept = ours.with_name(ours.name + KEPT)
    try:
        try:
            os.link(theirs, kept)
        except OSError:
            shutil.copy2(theirs, kept)
        os.replace(ours, theirs)  # noqa: PTH105 - one name to plant faults in
    except BaseException:
        with contextlib.suppress(OSError):
            kept.unlink(missing_ok=True)
        raise
    kept.replace(ours)


def _system_exchanges(ours: Path, theirs: Path) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(os.fsencode(ours), os.fsencode(theirs)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(theirs))
    return True


@functools.cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    if sys.platform not in {"linux", "darwin"}:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        return None if swap is None else lambda one, other: int(swap(one, other, ctypes.c_uint(_EXCHANGE)))
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return None
    here = ctypes.c_int(_AT_FDCWD)
    return lambda one, other: int(rename(here, one, here, other, ctypes.c_uint(_EXCHANGE)))
