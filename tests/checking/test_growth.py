"""What is done for a config of twice the size is twice as much: calls are counted, no clock is asked."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

import pytest

from tests.benchmarks.growth import OTHERS, SHAPES, work

SIZE = 1_500
SIZES = {"many at the deepest": 400, "pairs of equal keys": 2_000, "keys in single quotes": 2_000}
"""Of a shape of which a kilobyte takes many calls, and of those whose small text has few of the faults looked at."""
COMMANDS = ("check --fix", "formats of check", "diff of two", "editor")
"""Those whose work differs from that of others; the benchmark has more."""
CASES = [(shape, command) for shape in SHAPES for command in COMMANDS]
CASES += [(shape, command) for shape, (_, commands) in OTHERS.items() for command in commands]


def calls(made: Callable[[bytes], object], data: bytes) -> int:
    """Count the calls of functions, of Python and of C, that something makes."""
    profile = cProfile.Profile()
    profile.runcall(made, data)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.broad
@pytest.mark.parametrize(("shape", "command"), CASES)
def test_work_grows_with_the_input(shape: str, command: str) -> None:
    made, text = work(command), SHAPES[shape] if shape in SHAPES else OTHERS[shape][0]
    size = SIZES.get(shape, SIZE)
    small, large = text(size).encode(), text(4 * size).encode()
    made(large)  # what is made once
    few, many = calls(made, small), calls(made, large)
    # Four times the size; what grows with its square does 16 times as much. The proofs of fixes read what stands behind
    # them, so that where a small text is full of the first hundred fixes, these cost half.
    assert many <= 6 * few + 20_000, (few, many)
