"""Documents that take long, beside the event loop: one thread works on them in turn, while other requests are answered.

A document is long from ``LONG`` characters on. Nothing on the loop makes a tree of one: every handler that is about
it runs here as a whole. What nobody waits for any more, because a request was cancelled or the document has another
text by now, ends at its next pause, and nothing takes longer than ``LIMIT``.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from dsmigrate.patience import Patience

LONG = 1 << 16
"""Characters from which a text is long: some hundredths of a second to check."""
LIMIT = 20.0
"""Seconds of its own that a piece of work may take."""
THREAD = "long documents"
_Result = TypeVar("_Result")


class Aside:
    """The thread, and what is being done or waits there."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
        self._current: dict[str, set[Patience]] = {}

    async def run(self, uri: str, work: Callable[[], _Result]) -> _Result:
        """Return what ``work`` returns, which is about the document at ``uri``; raises what it raises.

        Raises CancelledWorkError when the document changes meanwhile. Ends when the task is cancelled.
        """

        def without_collections() -> _Result:
            with _without_collections():
                return work()

        return await self._in(self._pool, uri, without_collections, Patience(self._limit))

    async def beside(self, work: Callable[[], _Result]) -> _Result:
        """Return what ``work`` returns, which is about no open document, in any thread and without a limit."""

        def leaving_no_garbage() -> _Result:  # a conversion leaves megabytes, which Python would keep for many more
            try:
                return work()
            finally:
                gc.collect()

        return await self._in(None, "", leaving_no_garbage, Patience())

    async def _in(self, pool: Executor | None, uri: str, work: Callable[[], _Result], patience: Patience) -> _Result:
        def patiently() -> _Result:
            with patience.within():
                return work()

        waiting = self._current.setdefault(uri, set())
        waiting.add(patience)
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, patiently)
        except asyncio.CancelledError:
            patience.cancel()
            raise
        finally:
            waiting.discard(patience)
            if not waiting:
                self._current.pop(uri, None)

    def outdate(self, uri: str) -> None:
        """End what is about a document: it has another text now, or is closed."""
        for patience in self._current.get(uri, ()):
            patience.cancel()

    def forget(self) -> None:
        """Clear away what a long document has left, after it is closed."""
        self._pool.submit(_tidy)

    def end(self) -> None:
        """End everything."""
        for uri in list(self._current):
            self.outdate(uri)
        self._pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Work without a search for garbage, which would stop every thread for most of a second, a tree being so large.

    What has been made is left out of searches from then on; it goes when nobody refers to it.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _tidy() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()
