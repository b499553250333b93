"""Work that may be given up: where nobody waits for it any more, and where it has taken as long as it may.

Whoever starts the work keeps a ``Patience`` and does it ``within`` that; the work calls ``pause`` between steps of some
milliseconds, and ends there with an EndedError. Outside of ``within`` a pause is nothing, so that commands take as long
as they need.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar


class EndedError(BaseException):
    """The work has ended before it was done; as the end of a task, no handler of errors on the way may take it."""


class CancelledWorkError(EndedError):
    """Nobody waits for it any more."""


class LimitError(EndedError):
    """It has taken as long as it may: what is done so far is worth something."""


class Patience:
    """How long a piece of work may go on, in seconds of the clock that it is given: by default, of its own thread."""

    __slots__ = ("_clock", "_end", "_seconds", "is_cancelled")

    def __init__(self, seconds: float = float("inf"), clock: Callable[[], float] = time.thread_time) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = float("inf")
        self.is_cancelled = False

    def cancel(self) -> None:
        """Have the work end at its next pause, from whatever thread."""
        self.is_cancelled = True

    def ask(self) -> None:
        """Raise CancelledWorkError or LimitError where the work is to end."""
        if self.is_cancelled:
            raise CancelledWorkError
        if self._clock() > self._end:
            raise LimitError

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Do what is inside with this patience, from now on and in this thread; raises as ``ask`` at once."""
        if self.is_cancelled:
            raise CancelledWorkError
        self._end = self._clock() + self._seconds
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: ContextVar[Patience | None] = ContextVar("patience", default=None)


def pause() -> None:
    """Go on, or end: raises what ``Patience.ask`` raises, and nothing where no patience is in force."""
    patience = _CURRENT.get()
    if patience is not None:
        patience.ask()
