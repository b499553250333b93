"""What is said of runs that were stopped and started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dsmigrate.verify.compare import compare
from dsmigrate.verify.device import Device
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import ORIGINAL, Resumed, Run, Step, Verdict
from dsmigrate.verify.request import Request
from dsmigrate.verify.resume import continuation, resumed
from dsmigrate.verify.trial import Scene, Trials
from tests.verify.runs import batch, converted, run, step

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
        ("data-not-restored", lambda one: replace(one, data=(batch(1), batch(2)), loss=one.loss * 1.1)),
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


def test_a_second_start_that_reads_nothing_is_no_agreement(tmp_path: Path) -> None:
    """However equal its losses are, and whatever the original does."""
    whole = converted()
    first = replace(converted(steps=STOPPED), saved=("/copy/last.pt",))

    class Both(Trials):
        def run(self, name: str, *_: object, **__: object) -> Run:
            return first if "first half" in name else replace(second(), reads=reads)

    trials = Both(Request(tmp_path / "train.py"), "python", Device(cpu=True, pretend=False, why=""), tmp_path)
    scene = Scene(tmp_path, "train.py", tmp_path)
    reads: tuple[str, ...] = ()
    found = resumed(trials, scene, whole, (), (), 2)
    assert found.comparison is not None
    assert found.comparison.agrees
    assert not found.agrees
    assert [cause.id for cause in found.comparison.causes] == ["nothing-read"]
    assert "reads no checkpoint" in words.resume_line(found)
    good = compare(run(), converted())
    assert not Verdict(2, good, found).is_open
    assert Verdict(2, good, replace(found, name=ORIGINAL)).is_open
    reads = ("/copy/last.pt",)
    assert resumed(trials, scene, whole, (), (), 2).agrees
