"""A short turn of every target; a long one is ``python -m tests.fuzz --minutes N``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.targets import SEEN, TARGETS, emptied

pytestmark = pytest.mark.broad
CASES = {"protocol": 20, "script": 25}
"""Of the targets whose cases take longer than those of others: a session is 40 messages, a script is run abstractly."""
OTHERS = 60


@pytest.mark.parametrize("target", TARGETS)
def test_a_turn(target: str, tmp_path: Path) -> None:
    SEEN.clear()
    cases = CASES.get(target, OTHERS)
    for seed in range(cases):
        with emptied(tmp_path) as folder:
            TARGETS[target](random.Random(seed), folder)  # noqa: S311 - cases, not secrets
    read = sum(times for (_, code), times in SEEN.items() if code != 2)
    assert read > cases / 3, SEEN  # else it is broken usage that is tried
