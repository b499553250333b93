from __future__ import annotations

from fractions import Fraction

import pytest

from dsmigrate.editing.derived import replaced_steps, triad
from dsmigrate.knowledge import Consumer
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL

from .contexts import context

ALL = f'"{TOTAL}": 64, "{MICRO}": 4, "{STEPS}": 8'


@pytest.mark.parametrize(
    ("members", "world", "formulas", "effective"),
    [
        (f'"{MICRO}": 4, "{STEPS}": 8', None, {TOTAL: "4 × 8 × world size"}, "4 × 8 × world size"),
        (f'"{MICRO}": 4, "{STEPS}": 8', 2, {TOTAL: "4 × 8 × 2 = 64"}, "64"),
        (f'"{MICRO}": 4', None, {STEPS: "1", TOTAL: "4 × 1 × world size"}, "4 × 1 × world size"),
        (f'"{TOTAL}": 256', None, {STEPS: "1", MICRO: "256 / world size"}, "256"),
        (f'"{TOTAL}": 256', 8, {STEPS: "1", MICRO: "256 / 8 = 32"}, "256"),
        (f'"{TOTAL}": 256, "{MICRO}": 4', None, {STEPS: "256 / (4 × world size)"}, "256"),
        (f'"{TOTAL}": 256, "{MICRO}": 4', 8, {STEPS: "256 / (4 × 8) = 8"}, "256"),
        (f'"{TOTAL}": 256, "{STEPS}": 4', 8, {MICRO: "256 / (4 × 8) = 8"}, "256"),
        (f'"{TOTAL}": 256, "{STEPS}": 1', 8, {MICRO: "256 / 8 = 32"}, "256"),
        (ALL, 2, {}, "64"),
        (f'"{MICRO}": null, "{TOTAL}": 8', 2, {STEPS: "1", MICRO: "8 / 2 = 4"}, "8"),
        (f'"{MICRO}": 4, "sequence_parallel_size": 2', 8, {STEPS: "1", TOTAL: "4 × 1 × 4 = 16"}, "16"),
        (
            f'"{MICRO}": 4, "sequence_parallel_size": 2',
            None,
            {STEPS: "1", TOTAL: "4 × 1 × world size / 2"},
            "4 × 1 × world size / 2",
        ),
        (
            f'"{MICRO}": 4, "sequence_parallel_size": 2, "data_parallel_size": 3',
            None,
            {STEPS: "1", TOTAL: "4 × 1 × 3 = 12"},
            "12",
        ),
    ],
)
def test_the_keys_that_are_left_out_follow_from_the_others(
    members: str, world: int | None, formulas: dict[str, str], effective: str
) -> None:
    found = triad(context(members, world=world))
    assert found is not None
    assert found.formulas == formulas
    assert found.effective == effective
    assert found.fits


def test_three_keys_ask_for_a_world_size() -> None:
    found = triad(context(ALL))
    assert found is not None
    assert (found.needed, found.fits) == (Fraction(2), True)


@pytest.mark.parametrize(
    ("members", "world"),
    [
        (ALL, 4),
        (f'"{TOTAL}": 65, "{MICRO}": 4, "{STEPS}": 8', None),
        (f'"{TOTAL}": 10, "{MICRO}": 4', 1),
        (f'"{TOTAL}": 2', 4),
    ],
)
def test_keys_that_no_division_makes_even_do_not_fit(members: str, world: int | None) -> None:
    found = triad(context(members, world=world))
    assert found is not None
    assert not found.fits


@pytest.mark.parametrize(
    "members",
    [
        "",
        f'"{STEPS}": 8',
        f'"{MICRO}": "four"',
        f'"{MICRO}": 0',
        f'"{MICRO}": []',
        f'"{MICRO}": 1{"0" * 400}',
        f'"{MICRO}": "auto"',  # stops plain DeepSpeed
    ],
)
def test_keys_that_make_no_sense_have_no_equation(members: str) -> None:
    assert triad(context(members)) is None


def test_what_the_consumer_fills_is_named_in_the_formula() -> None:
    members = f'"{MICRO}": "auto", "{STEPS}": 8, "{TOTAL}": "auto"'
    found = triad(context(members, consumer=Consumer.TRANSFORMERS, world=2))
    assert found is not None
    assert (found.effective, found.total, found.steps) == ("micro-batch × 8 × 2", None, 8)


def test_accelerate_writes_one_step_where_none_is_given() -> None:
    members = f'"{TOTAL}": 64, "{MICRO}": 4'
    for consumer, formulas in ((Consumer.ACCELERATE, {}), (Consumer.DEEPSPEED, {STEPS: "64 / (4 × 16) = 1"})):
        found = triad(context(members, consumer=consumer, world=16))
        assert found is not None
        assert (found.steps, found.formulas) == (1, formulas)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ('"zenflow": {"update_interval": 4}', "4"),
        ('"zenflow": {}', "what it decides during training"),
        ('"zenflow": null', ""),
        ('"stage": 2', ""),
    ],
)
def test_zenflow_replaces_the_accumulation(section: str, told: str) -> None:
    assert replaced_steps(context(f'"zero_optimization": {{{section}}}')) == told


def test_releases_without_zenflow_replace_nothing() -> None:
    assert replaced_steps(context('"zero_optimization": {"zenflow": {"update_interval": 4}}', version="0.17.0")) == ""
