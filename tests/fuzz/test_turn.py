"""A short turn of every target; a long one is ``python -m tests.fuzz --minutes N``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.targets import SEEN, TARGETS, emptied

pytestmark = pytest.mark.broad
CASES = 60
SESSIONS = 20
"""Of the protocol: each is 40 messages."""


@pytest.mark.parametrize("target", TARGETS)
def test_a_turn(target: str, tmp_path: Path) -> None:
    SEEN.clear()
    cases = SESSIONS if target == "protocol" else CASES
    for seed in range(cases):
        with emptied(tmp_path) as folder:
            TARGETS[target](random.Random(seed), folder)  # noqa: S311 - cases, not secrets
    read = sum(times for (_, code), times in SEEN.items() if code != 2)
    assert read > cases / 3, SEEN  # else it is broken usage that is tried
