"""Memory that edits have left in pieces, given back to the system where the C library can."""

from __future__ import annotations

import functools
from collections.abc import Callable

EVERY = 5_000
"""Messages between two times; one takes about a millisecond."""


def give_back() -> None:
    """Return free pages to the system; nothing where the C library has no such call, as on macOS, Windows and musl.

    Every edit frees the texts and trees of the one before, and leaves gaps between what stays; glibc keeps these, so
    that hours of typing would add some MiB to what the server seems to need.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        import ctypes  # noqa: PLC0415 - a session of few edits does without

        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return None
    return found
