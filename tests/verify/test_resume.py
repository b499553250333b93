"""What is said of runs that were stopped and started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dsmigrate.verify.compare import compare
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Resumed, Run, Step, Verdict
from dsmigrate.verify.resume import continuation
from tests.verify.runs import converted, run, step

STOPPED = 4


def second(change: Callable[[Step], Step] = lambda one: one) -> Run:
    """The second half of the run that ``converted`` builds, as it is recorded after a restart."""
    steps = [replace(change(step(STOPPED + index)), index=index) for index in range(4)]
    return replace(converted(steps=4), steps=tuple(steps))


def test_a_run_that_goes_on_agrees() -> None:
    found = continuation(converted(), second(), STOPPED, 1.0)
    assert found.agrees
    assert len(found.original.steps) == 4


@pytest.mark.parametrize(
    ("wanted", "change"),
    [
        ("schedule-not-restored", lambda one: replace(one, groups=({**one.groups[0], "lr": 0.1},))),
        (
            "optimizer-not-restored",
            lambda one: replace(one, groups=({**one.groups[0], "lr": 0.1},)) if one.index == STOPPED else one,
        ),
        ("weights-not-restored", lambda one: replace(one, loss=one.loss * 1.2)),
        (
            "optimizer-not-restored",
            lambda one: replace(one, loss=one.loss * (1.1 if one.index > STOPPED else 1)),
        ),
        ("starts-from-scratch", lambda one: step(one.index - STOPPED)),
    ],
)
def test_what_is_lost_is_named(wanted: str, change: Callable[[Step], Step]) -> None:
    found = continuation(converted(), second(change), STOPPED, 1.0)
    assert not found.agrees
    assert [cause.id for cause in found.causes] == [wanted]


def test_what_the_original_does_not_restore_is_not_held_against_the_conversion() -> None:
    found = continuation(converted(), second(lambda one: replace(one, loss=one.loss * 1.2)), STOPPED, 1.0)
    good = compare(run(), converted())
    assert not Verdict(2, good, Resumed("converted", STOPPED, found)).agrees
    excused = Resumed("converted", STOPPED, found, excused=True)
    assert Verdict(2, good, excused).agrees
    assert words.resume_line(excused).endswith("; the original does not go on exactly either")
