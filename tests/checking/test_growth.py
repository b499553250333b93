"""What is done for a config of twice the size is twice as much: calls are counted, no clock is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from tests.benchmarks.growth import COMMANDS, SHAPES, work

SIZE = 3_000


def calls(made: Callable[[bytes], object], data: bytes) -> int:
    """Count the calls of functions, of Python and of C, that something makes."""
    count = 0

    def one(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    former = sys.getprofile()
    sys.setprofile(one)
    try:
        made(data)
    finally:
        sys.setprofile(former)
    return count


@pytest.mark.broad
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_input(shape: str, command: str) -> None:
    made = work(command)
    small, large = (SHAPES[shape](size).encode() for size in (SIZE, 4 * SIZE))
    made(small)  # what is made once
    made(large)
    few, many = calls(made, small), calls(made, large)
    assert many <= 5 * few + 20_000, (few, many)
