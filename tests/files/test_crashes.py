"""A turn of ``tests.files.crashes``: every step of a run killed once, every one with a full disk, edits and pairs."""

from __future__ import annotations

import os
import random

import pytest

from tests.files import crashes

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="each case is a fork"), pytest.mark.broad]


def test_a_run_that_is_killed_at_any_step_loses_and_mixes_nothing() -> None:
    assert crashes.steps() > 40


def test_a_run_that_is_killed_at_any_moment_loses_and_mixes_nothing() -> None:
    chance = random.Random(1)  # noqa: S311 - moments, not secrets
    crashes.killed(10, chance)


def test_a_full_disk_at_any_step_leaves_everything_as_it_was() -> None:
    assert all(crashes.full(step) for step in range(crashes.steps()))


def test_an_edit_at_any_step_stays() -> None:
    chance = random.Random(2)  # noqa: S311 - moments, not secrets
    stopped = [crashes.edited(chance, step) for step in range(crashes.steps())]
    assert any(stopped)


def test_of_two_runs_at_once_one_writes() -> None:
    chance = random.Random(3)  # noqa: S311 - moments, not secrets
    wrote = [crashes.pair(chance) for _ in range(10)]
    assert any(wrote)
