"""The original against itself: noise is called noise, and a difference beside it a difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dsmigrate.verify.control import Control
from dsmigrate.verify.formats import words
from dsmigrate.verify.job import judge
from dsmigrate.verify.model import Comparison, Ending, Outcome, Run, Step, Verdict, Verification, VerifyError
from tests.verify.runs import batch, converted, rates, run, weights


def changed(change: Callable[[Step], Step], found: Run | None = None, **more: object) -> Run:
    found = found or run("original again")
    return replace(found, steps=tuple(map(change, found.steps)), **more)  # type: ignore[arg-type]


def scaled(by: float, since: int = 0) -> Callable[[Step], Step]:
    return lambda one: replace(one, loss=one.loss * by) if one.index >= since else one


class Again:
    """Stands for the second run of an original, and remembers for how many steps it was asked."""

    def __init__(self, whole: Run) -> None:
        self.whole = whole
        self.asked: list[int] = []

    def __call__(self, steps: int) -> Run:
        self.asked.append(steps)
        return replace(self.whole, steps=self.whole.steps[:steps])


def judged(after: Run, again: Run) -> tuple[Comparison, list[int]]:
    second = Again(again)
    return judge(run(), after, 1.0, Control(run(), second)), second.asked


def verification(found: Comparison) -> Verification:
    return Verification(Path("train.py"), None, "CPU", (Verdict(2, found),))


def test_an_agreement_needs_no_second_run() -> None:
    found, asked = judged(converted(), run())
    assert found.agrees
    assert asked == []


def test_a_difference_of_an_original_that_repeats_itself_is_one() -> None:
    found, asked = judged(converted(scaled(1.5, 3)), run())
    assert asked == [4]  # no longer than it takes
    assert not found.agrees
    assert not found.is_noise
    assert words.status(found) == "parts"
    assert "the same bit by bit" in words.noise(found)[0]
    assert not verification(found).is_open


def test_what_the_original_does_not_repeat_is_noise() -> None:
    found, asked = judged(converted(scaled(1.02)), changed(scaled(0.99)))
    assert asked == [1, 8]
    assert found.differences == ()
    assert found.causes == ()
    assert found.is_noise
    assert words.status(found) == "unrepeatable"
    assert words.headline(found).startswith("the original does not repeat itself")
    assert "another generator, the clock" in words.noise(found)[1]
    assert verification(found).is_open
    assert not verification(found).agrees


def test_what_is_far_beyond_the_noise_is_a_difference() -> None:
    found, _ = judged(converted(scaled(2.0)), changed(scaled(0.99)))
    assert [one.quantity for one in found.differences] == ["loss"]
    assert not found.is_noise


def test_what_parts_before_the_noise_begins_is_a_difference() -> None:
    found, _ = judged(converted(scaled(1.02, 2)), changed(scaled(0.99, 5)))
    assert found.first is not None
    assert (found.first.quantity, found.first.step) == ("loss", 2)


def test_what_the_script_sets_is_judged_in_noise_too() -> None:
    found, _ = judged(rates(converted(scaled(1.02)), [0.1] * 8), changed(scaled(0.99)))
    assert [one.quantity for one in found.differences] == ["learning rate"]


def test_noise_below_the_tolerance_widens_it() -> None:
    found, _ = judged(converted(scaled(1 + 8e-6)), changed(scaled(1 - 1.5e-6)))
    assert found.agrees
    assert "ten times that is allowed" in words.noise(found)[0]


def other_batches(one: Step) -> Step:
    return replace(one, data=(batch(500 + one.index), batch(700 + one.index)), loss=one.loss * 1.01)


@pytest.mark.parametrize(
    ("again", "reason"),
    [
        (changed(scaled(0.9), start=weights(9)), "the weights differ before the first step"),
        (changed(other_batches), "other inputs go into the model from step 1 on"),
        (rates(changed(scaled(0.9)), [0.1 + 0.01 * index for index in range(8)]), "the learning rate differs"),
        (changed(lambda one: replace(one, random=1, loss=one.loss * 0.9)), "the random generator of torch"),
    ],
)
def test_the_reason_is_named(again: Run, reason: str) -> None:
    found, _ = judged(converted(other_batches), again)
    assert found.noise.reason.startswith(reason)


def test_one_more_bit_in_the_inputs_counts() -> None:
    def one_bit(one: Step) -> Step:
        first, *rest = one.data
        inputs, targets = first
        return replace(one, data=((inputs, targets._replace(exact=targets.exact + 1)), *rest))

    found, _ = judged(changed(one_bit, converted()), run())
    assert found.first is not None
    assert (found.first.quantity, found.first.error) == ("inputs", math.inf)
    assert [cause.id for cause in found.causes] == ["data-order"]


def test_rounded_inputs_are_the_same_and_reordered_ones_are_not() -> None:
    def moved(by: float) -> Callable[[Step], Step]:
        def change(one: Step) -> Step:
            return replace(one, data=tuple(
                (inputs._replace(exact=0, product=inputs.product + by), targets) for inputs, targets in one.data
            ))  # fmt: skip

        return change

    assert judged(changed(moved(1e-6), converted()), run())[0].agrees
    assert not judged(changed(moved(0.1), converted()), run())[0].agrees


def test_an_original_that_fails_the_second_time_is_said() -> None:
    outcome = Outcome(Ending.CRASHED, "torchrun train.py", (1, 1), ("", ""))
    with pytest.raises(VerifyError, match="does not repeat itself: it trains once, and then fails after 2 optimizer"):
        judged(converted(scaled(1.5, 3)), replace(run(steps=2), outcome=outcome))


def test_all_stages_share_the_second_run() -> None:
    second = Again(run())
    control = Control(run(), second)
    for since in (5, 3, 5, 6):
        judge(run(), converted(scaled(1.5, since)), 1.0, control)
    assert second.asked == [6, 7]
