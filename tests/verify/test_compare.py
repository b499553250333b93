"""Where two runs part, and how much is allowed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dsmigrate.verify.compare import compare, relative
from dsmigrate.verify.model import Step
from dsmigrate.verify.tolerance import FULL, FULL_ON_GPU, HALF, MIXED, MIXED_AT_ZERO_3, choose
from tests.verify.runs import converted, run, sketch, step, weights


def test_equal_runs_agree() -> None:
    found = compare(run(), converted())
    assert found.agrees
    assert found.differences == ()
    assert found.causes == ()
    assert found.worst["loss"] == 0.0


def test_rounding_is_no_difference() -> None:
    found = compare(
        run(), converted(lambda one: replace(one, loss=one.loss * (1 + 1e-6), norm=(one.norm or 0) * 1.00001))
    )
    assert found.agrees
    assert found.worst["loss"] == pytest.approx(1e-6, rel=1e-3)


def test_a_difference_has_its_step_its_values_and_what_was_allowed() -> None:
    found = compare(run(), converted(lambda one: replace(one, loss=one.loss * (1.5 if one.index >= 3 else 1))))
    assert not found.agrees
    first = found.first
    assert first is not None
    assert (first.quantity, first.step) == ("loss", 3)
    assert first.converted == pytest.approx(1.5 * first.original)
    assert first.error == pytest.approx(0.5)
    assert first.allowed == pytest.approx(FULL.loss * 1.6)


def test_the_earliest_difference_comes_first_and_within_a_step_the_cause_before_its_effect() -> None:
    def change(one: Step) -> Step:
        if one.index < 2:
            return one
        return replace(one, loss=one.loss * 2, samples=12, norm=9.0, applied=9.0)

    found = compare(run(), converted(change))
    assert [(one.quantity, one.step) for one in found.differences] == [
        ("samples", 2),
        ("loss", 2),
        ("gradient norm", 2),
        ("clipped gradient norm", 2),
    ]


def test_the_first_loss_has_next_to_no_excuse() -> None:
    off = 1 + 5e-6
    assert compare(run(), converted(lambda one: replace(one, loss=one.loss * (off if one.index else 1)))).agrees
    assert not compare(run(), converted(lambda one: replace(one, loss=one.loss * off))).agrees


def test_a_factor_widens_every_tolerance() -> None:
    off = converted(lambda one: replace(one, loss=one.loss * (1 + 1e-4)))
    assert not compare(run(), off).agrees
    assert compare(run(), off, 100.0).agrees


def test_losses_near_zero_are_measured_by_the_first_one() -> None:
    before = replace(run(), steps=tuple(replace(step(i), loss=2.0 if i == 0 else 1e-9) for i in range(4)))
    after = converted(steps=4)
    after = replace(after, steps=tuple(replace(one, loss=2.0 if i == 0 else 2e-9) for i, one in enumerate(after.steps)))
    assert compare(before, after).agrees


def test_a_norm_that_is_not_known_is_not_compared_and_that_is_said() -> None:
    found = compare(run(), converted(lambda one: replace(one, norm=None, applied=None)))
    assert found.agrees
    assert any("norms" in note for note in found.notes)


def test_skipped_steps_have_no_norm_and_must_be_the_same() -> None:
    def skip(one: Step) -> Step:
        return replace(one, skipped=True, norm=math.inf, applied=math.inf) if one.index == 0 else one

    assert compare(replace(run(), steps=tuple(map(skip, run().steps))), converted(skip)).agrees
    assert compare(run(), converted(skip)).differences[0].quantity == "skipped"


@pytest.mark.parametrize(
    ("expected", "actual", "error"),
    [(1.0, 1.0, 0.0), (2.0, 1.0, 0.5), (math.nan, math.nan, 0.0), (math.nan, 1.0, math.inf), (1.0, math.inf, math.inf)],
)
def test_relative_errors(expected: float, actual: float, error: float) -> None:
    assert relative(expected, actual) == error


def test_nan_in_both_runs_is_no_difference() -> None:
    def spoil(one: Step) -> Step:
        return replace(one, loss=math.nan) if one.index > 4 else one

    found = compare(replace(run(), steps=tuple(map(spoil, run().steps))), converted(spoil))
    assert found.agrees
    assert found.notes == ("the loss of the original is not a finite number from step 6 on: equal is not right there",)


def test_a_run_without_an_engine_is_no_conversion_however_equal_it_is() -> None:
    found = compare(run(), run("converted"))
    assert not found.agrees
    assert [one.quantity for one in found.differences] == ["engine"]
    assert [cause.id for cause in found.causes] == ["no-engine"]
    assert compare(run(), run("original, resumed"), is_conversion=False).agrees


def test_that_nothing_is_trained_is_a_note() -> None:
    def still(one: Step) -> Step:
        return replace(one, norm=0.0, applied=0.0)

    found = compare(replace(run(), steps=tuple(map(still, run().steps))), converted(still))
    assert found.agrees
    assert any("nothing is trained" in note for note in found.notes)


def test_that_the_weights_stand_still_in_the_original_is_a_note() -> None:
    found = compare(run(end=(weights(1), weights(1))), converted(end=(weights(1), weights(1))))
    assert found.agrees
    assert any(note.startswith("training has not moved the weights of the original") for note in found.notes)


def test_that_the_loss_of_the_original_never_changes_is_a_note() -> None:
    def constant(one: Step) -> Step:
        return replace(one, loss=0.5)

    found = compare(replace(run(), steps=tuple(map(constant, run().steps))), converted(constant))
    assert found.agrees
    assert any(note.startswith("the loss of the original is the same at every step") for note in found.notes)
    single = replace(run(), steps=(constant(run().steps[0]),))
    assert not compare(single, converted(constant, steps=1)).notes


def test_that_the_ranks_of_the_original_part_is_a_note() -> None:
    def torn(one: Step) -> Step:
        return replace(one, norms=(1.0, 1.2)) if one.index >= 2 else one

    found = compare(replace(run(), steps=tuple(map(torn, run().steps))), converted())
    assert found.agrees
    assert len(found.notes) == 1
    assert found.notes[0].startswith("the ranks of the original have different gradients from step 3 on")


def test_another_length_is_a_difference() -> None:
    found = compare(run(), converted(steps=6))
    assert found.differences[0].quantity == "number of steps"
    assert (found.differences[0].original, found.differences[0].converted) == (8, 6)


def test_weights_are_compared_by_how_far_training_moved_them() -> None:
    far = compare(run(), converted(end=(weights(7), weights(7))))
    assert far.first is not None
    assert far.first.quantity == "weights"
    assert "farthest: layer.weight" in far.first.detail
    near = {
        name: {**one, "products": [p * (1 + 1e-4) for p in one["products"]]} for name, one in weights(2).tensors.items()
    }
    assert compare(run(), converted(end=(replace(weights(2), tensors=near),))).agrees


def test_groups_of_the_same_settings_may_be_split() -> None:
    def split(one: Step) -> Step:
        return replace(one, groups=(one.groups[0], one.groups[0]))

    assert compare(run(), converted(split)).agrees


def test_buffers_that_differ_are_a_note() -> None:
    def with_buffer(seed: int) -> tuple[object, ...]:
        found = {**weights(2).tensors, "bn.running_mean": sketch(seed, buffer=True)}
        return (replace(weights(2), tensors=found),) * 2

    found = compare(run(end=with_buffer(5)), converted(end=with_buffer(6)))
    assert found.agrees
    assert any("running statistics" in note for note in found.notes)


def test_the_tolerance_is_that_of_the_precision_of_the_original() -> None:
    def half(one: Step) -> Step:
        return replace(one, autocast=("bfloat16",))

    mixed = run(steps=2)
    mixed = replace(mixed, steps=tuple(map(half, mixed.steps)))
    assert choose(run(), converted(half)) is FULL
    assert choose(mixed, converted()) is MIXED
    assert choose(mixed, converted(setting={"zero_stage": 3})) is MIXED_AT_ZERO_3
    assert choose(run(start=weights(1, dtype="bfloat16")), converted()) is HALF
    assert choose(run(setting={"ranks": 2, "device": "NVIDIA H100"}), converted()) is FULL_ON_GPU
