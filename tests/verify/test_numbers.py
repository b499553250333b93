"""Two numbers that differ are never written alike."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Difference
from dsmigrate.verify.numbers import told_apart

NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, st.integers(-3, 3))
def test_neighbours_can_be_told_apart(one: float, apart: int) -> None:
    other = one
    for _ in range(abs(apart)):
        other = math.nextafter(other, math.copysign(math.inf, apart))
    before, after = told_apart(one, other)
    assert (before == after) is (one == other)
    said = words.difference(Difference("loss", 0, one, other, 1e-5, 1e-6))
    assert one == other or f"{before} in the original, {before} in the conversion" not in said


def test_no_more_digits_than_it_takes() -> None:
    assert told_apart(9.69349, 9.7) == ("9.69349", "9.7")
    assert told_apart(9.693491, 9.693494) == ("9.693491", "9.693494")
    assert told_apart(None, 2.0) == ("none", "2")
    assert words.values(Difference("learning rate", 0, (0.1, 0.2), (0.1, math.nextafter(0.2, 1)), 1e-16, 0.0)) == (
        "0.20000000000000001",
        "0.20000000000000004",
    )
