"""Standard input as the event loop reads it: a thread of its own hands over whatever there is, in one piece.

pygls asks a pool of threads for each line of each message, which costs more than most answers.
"""

from __future__ import annotations

import asyncio
import os
import threading

THREAD = "standard input"
_CHUNK = 1 << 16
_LONGEST = 1 << 16
"""Bytes of a line beyond which it is no header, and comes in pieces."""
_MOST = 1 << 20
"""Bytes that wait for the server beyond which the client waits as well."""


class Input:
    """What a file descriptor brings, as pygls reads messages."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._data = bytearray()
        self._at_end = False
        self._arrival: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = threading.Condition()
        self._waiting = 0
        self._wanted = 0

    async def readline(self) -> bytes:
        """Return the next line; at the end of the input what is left, be it nothing."""
        searched = 0
        while True:
            end = self._data.find(b"\n", searched) + 1
            if end:
                return self._take(end)
            searched = len(self._data)
            if self._at_end or searched > _LONGEST:
                return self._take(searched)
            await self._more()

    async def readexactly(self, size: int) -> bytes:
        """Return the next ``size`` bytes; nothing where the input ends before.

        What the message before has begun goes on first, also where the next one is there already.
        """
        await asyncio.sleep(0)
        while len(self._data) < size:
            if self._at_end:
                return b""
            with self._room:
                self._wanted = size
                self._room.notify()
            await self._more()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._data[:size])
        del self._data[:size]
        with self._room:
            self._waiting -= size
            self._wanted = 0
            self._room.notify()
        return taken

    async def _more(self) -> None:
        loop = asyncio.get_running_loop()
        self._arrival = loop.create_future()
        if self._loop is None:
            self._loop = loop
            threading.Thread(target=self._read, args=(loop,), name=THREAD, daemon=True).start()
        await self._arrival

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over data until there is no more, in the thread."""
        try:
            data = b"begin"
            while data:
                data = os.read(self._descriptor, _CHUNK)
                with self._room:
                    self._room.wait_for(lambda: self._waiting < max(_MOST, self._wanted))
                    self._waiting += len(data)
                loop.call_soon_threadsafe(self._arrived, data)
        except (OSError, RuntimeError):  # the input, or the loop, was closed
            pass

    def _arrived(self, data: bytes) -> None:
        self._data += data
        self._at_end = not data
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
