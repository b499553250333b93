"""Waiting for events: what a test waits for comes about, sooner on one machine and later on another."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 900.0
"""Seconds after which something that should come about is said not to; no test is quicker because of it."""
_POLL_SECONDS = 0.01


def until(happened: Callable[[], object], what: str = "it") -> None:
    """Return once something has happened; AssertionError where it does not for a very long time."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(_POLL_SECONDS)


class Clock:
    """Stands for the module ``time``: no time passes until something has happened, and then all of it.

    Whoever sleeps after that sleeps until ``then`` has happened too.
    """

    def __init__(self, happened: Callable[[], object], then: Callable[[], object] = lambda: True) -> None:
        self._happened = happened
        self._then = then
        self._end = time.monotonic() + PATIENCE
        self._has_happened = False
        self._now = 0.0

    def monotonic(self) -> float:
        """Return 0 until it has been seen that it has happened, and much more at each call from then on."""
        assert time.monotonic() < self._end, "it did not come about"
        if self._has_happened:
            self._now += 1e6
        self._has_happened = self._has_happened or bool(self._happened())
        return self._now

    def sleep(self, seconds: float) -> None:
        """Sleep as asked: others need the processor."""
        time.sleep(seconds)
        if self._now:
            until(self._then)
