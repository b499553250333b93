"""Standard streams that are closed, full, or have lost their reader."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from dsmigrate.languages import say

_NAMES = ("stdin", "stdout", "stderr")


def reopen_closed() -> None:
    """Put a stream that takes nothing in the place of each closed one, so that no file of ours gets its number."""
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDONLY)  # writing to it fails as writing to a closed one does
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            mode = "r" if number == 0 else "w"
            stream = os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)


def flushed() -> bool:
    """Return whether stdout and stderr took all that was written; say on stderr what stands against it.

    A stream that takes nothing more is given up: what Python still holds for it is lost, without another complaint.
    """
    return _took_all(sys.stdout) & _took_all(sys.stderr)


def _took_all(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: closed by somebody
        give_up(stream, error)
        return False
    return True


def give_up(stream: TextIO, error: OSError | ValueError) -> None:
    """Say on stderr why stdout takes nothing more, unless its reader has gone, and lose what is still to be written."""
    if stream is sys.stdout and not isinstance(error, BrokenPipeError):
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(say("standard output: {reason}", reason=reason) + "\n")
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
