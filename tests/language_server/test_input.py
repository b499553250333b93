"""Standard input comes as it was sent, however it is cut, and however much of it there is."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from dsmigrate.language_server.input import THREAD, Input
from tests.support.events import PATIENCE, until

_Read = TypeVar("_Read")


def read(data: bytes, reading: Callable[[Input], Awaitable[_Read]], piece: int = 1 << 16) -> _Read:
    """Return what ``reading`` reads of data that is sent in pieces, and then ends."""
    source, sink = os.pipe()

    def send() -> None:
        with os.fdopen(sink, "wb", buffering=0) as pipe:
            for at in range(0, len(data), piece):
                pipe.write(data[at : at + piece])

    async def awaited() -> _Read:
        return await asyncio.wait_for(reading(Input(source)), PATIENCE)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    found = asyncio.run(awaited())
    sender.join()
    close(source)
    return found


def close(source: int) -> None:
    """Close what a thread has read from once it has ended: it would read from the next pipe of the same number."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    os.close(source)


async def message(pipe: Input) -> bytes:
    size = 0
    while (line := await pipe.readline()).strip():
        size = int(line.rpartition(b":")[2])
    return await pipe.readexactly(size)


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_messages_are_whole_however_they_are_cut(piece: int) -> None:
    bodies = [b"{}", b"a\nb\r\n\r\nc" * 20, "é😀".encode() * 30]
    data = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)

    async def every(pipe: Input) -> list[bytes]:
        return [await message(pipe) for _ in bodies]

    assert read(data, every, piece) == bodies


def test_a_message_larger_than_what_may_wait_is_read() -> None:
    body = bytes(range(256)) * (20 << 10)  # 5 MiB
    assert read(b"Content-Length: %d\r\n\r\n%s" % (len(body), body), message) == body


def test_a_line_without_end_comes_in_pieces() -> None:
    async def pieces(pipe: Input) -> int:
        total = 0
        while line := await pipe.readline():
            assert len(line) <= (1 << 20) + (1 << 16)
            total += len(line)
        return total

    assert read(b"x" * 3_000_000, pieces) == 3_000_000


def test_the_end_of_the_input_ends_reading() -> None:
    async def cut_short(pipe: Input) -> tuple[bytes, bytes, bytes]:
        return await pipe.readline(), await pipe.readexactly(10), await pipe.readline()

    assert read(b"Content-Length: 10\r\n12345", cut_short) == (b"Content-Length: 10\r\n", b"", b"12345")


def test_what_a_message_began_goes_on_before_the_next_is_read() -> None:
    order: list[str] = []

    async def two(pipe: Input) -> list[str]:
        async def began() -> None:
            order.append("began by the first")

        for name in ("first", "second"):
            await message(pipe)
            order.append(name)
            if name == "first":
                running = asyncio.create_task(began())
        await running
        return order

    assert read(b"Content-Length: 1\r\n\r\n1" * 2, two) == ["first", "began by the first", "second"]


def test_the_client_waits_when_too_much_is_waiting() -> None:
    source, sink = os.pipe()
    line, sent, total = b"x" * 1023 + b"\n", 0, 64 << 16

    def send() -> None:
        nonlocal sent
        for _ in range(64):
            sent += os.write(sink, line * 64)
        os.close(sink)

    async def slow() -> tuple[int, int]:
        pipe = Input(source)
        await pipe.readline()
        threading.Thread(target=send, daemon=True).start()
        await asyncio.to_thread(until, lambda: pipe._room._waiters or sent == total)  # type: ignore[attr-defined]
        held, lines = sent, 0
        while await pipe.readline():
            lines += 1
        return held, lines

    os.write(sink, b"\n")
    held, lines = asyncio.run(slow())
    close(source)
    assert (1 << 20) - (1 << 16) <= held <= (1 << 20) + (1 << 18)
    assert (sent, lines) == (total, 64 << 6)
