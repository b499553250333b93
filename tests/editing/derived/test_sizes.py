from __future__ import annotations

import math

import pytest

from dsmigrate.editing.derived.sizes import LARGEST, bytes_text, count_text, whole


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (9_999, "9999"),
        (10_000, "10 k"),
        (100_000, "100 k"),
        (15_099_494, "15.1 M"),
        (50_000_000, "50 M"),
        (500_000_000, "500 M"),
        (1_000_000_000, "1 G"),
        (1_234_000_000, "1.23 G"),
        (10**12, "1 T"),
        (LARGEST, "1000000 T"),
    ],
)
def test_counts_are_short(count: int, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024, "1 KiB"),
        (200_000, "195 KiB"),
        (2**20, "1 MiB"),
        (100_000_000, "95.4 MiB"),
        (1_000_000_000, "0.93 GiB"),
        (2_000_000_000, "1.86 GiB"),
        (16_000_000_000, "14.9 GiB"),
        (2**40, "1 TiB"),
    ],
)
def test_bytes_are_short(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    "value", [True, None, "5e8", [1], -1, 0.5, math.nan, math.inf, LARGEST + 1, 10**400, float(10 * LARGEST)]
)
def test_what_counts_nothing_is_no_number_of_things(value: object) -> None:
    assert whole(value) is None


@pytest.mark.parametrize(("value", "number"), [(0, 0), (5e8, 500_000_000), (LARGEST, LARGEST)])
def test_whole_numbers_count(value: float, number: int) -> None:
    assert whole(value) == number
