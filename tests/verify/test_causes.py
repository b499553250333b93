"""Every signature is named for what it is made for, and for nothing that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dsmigrate.verify.causes import signatures
from dsmigrate.verify.compare import compare
from dsmigrate.verify.model import Run, Step, Weights
from tests.verify.runs import batch, converted, rates, run, step, weights

Case = tuple[str, Run, Run]


def _each(**changes: object) -> Callable[[Step], Step]:
    return lambda one: replace(one, **changes)  # type: ignore[arg-type]


def _factor(loss: float = 1.0, norm: float = 1.0) -> Callable[[Step], Step]:
    return lambda one: replace(
        one,
        loss=one.loss * loss,
        norm=(one.norm or 0) * norm,
        norms=tuple(n * norm for n in one.norms),
        applied=(one.applied or 0) * norm,
    )


def _from(index: int, change: Callable[[Step], Step]) -> Callable[[Step], Step]:
    return lambda one: change(one) if one.index >= index else one


def _clipped(limit: float | None) -> Callable[[Step], Step]:
    return lambda one: replace(one, limit=limit, applied=min(one.norm or 0, limit) if limit else one.norm)


def _changed(run_: Run, change: Callable[[Step], Step]) -> Run:
    return replace(run_, steps=tuple(map(change, run_.steps)))


def _schedule(factor: float) -> list[float]:
    return [0.1 * 0.9 ** (factor * index) for index in range(8)]


def _repeating(one: Step) -> Step:
    return replace(one, data=step(one.index % 4).data, loss=one.loss * (1 if one.index < 4 else 1.1))


def _unlike(one: Step) -> Step:
    return replace(one, data=(batch(1), batch(3)), loss=one.loss * 1.1)


PER_EPOCH = [0.1] * 4 + [0.05] * 4

CASES: list[Case] = [
    ("accumulation-window", run(), converted(_each(backwards=1, samples=8))),
    (
        "accumulation-window",
        _changed(run(), _from(7, _each(backwards=2, samples=16))),
        converted(),
    ),
    ("batch-size", run(), converted(_each(samples=12))),
    ("same-data-on-every-rank", run(), converted(lambda one: replace(one, data=(one.data[0],) * 2, loss=9.0))),
    ("epoch-order", run(), converted(_repeating)),
    ("data-order", run(), converted(_unlike)),
    ("no-engine", run(), run("converted")),
    ("precision", _changed(run(), _each(autocast=("bfloat16",))), converted(_factor(1.02))),
    ("precision", run(), converted(_factor(1.02), start=weights(1, dtype="bfloat16"))),
    ("evaluation-mode", run(), converted(_from(4, lambda one: replace(one, train=(False,), loss=one.loss * 0.8)))),
    ("other-start", run(), converted(_factor(1.3), start=weights(5))),
    ("random-numbers", run(), converted(lambda one: replace(one, random=7, loss=one.loss * 1.013))),
    ("loss-divided-by-accumulation", run(), converted(_factor(3.0, 3.0))),
    (
        "loss-divided-by-accumulation",
        run(),
        converted(_factor(1 / 5, 1 / 5), setting={"gradient_accumulation_steps": 5}),
    ),
    ("loss-divided-by-world-size", run(), converted(_factor(0.5, 0.5))),
    ("loss-scaled-twice", run(), converted(_factor(65536.0, 65536.0))),
    ("loss-multiplied", run(), converted(_factor(0.1, 0.1))),
    ("other-loss", run(), converted(_factor(1.137))),
    ("gradient-gone", run(), converted(lambda one: replace(one, norm=0.0, norms=(0.0, 0.0), applied=0.0))),
    (
        "managed-accumulation",
        run(),
        converted(_factor(norm=0.8), setting={"managed": True}),
    ),
    ("gradient-not-averaged", run(), converted(lambda one: replace(one, norm=3.3, norms=(3.5, 3.1)))),
    ("gradient-not-averaged", run(), converted(_from(2, _factor(1.2)), end=(weights(2), weights(3)))),
    ("gradient-kept", run(), converted(_from(1, lambda one: replace(one, carry=2.0, norm=9.0)))),
    ("gradient-added-up", run(), converted(_from(1, lambda one: replace(one, outside=1, norm=9.0)))),
    ("gradient-divided", run(), converted(_factor(norm=0.5))),
    ("gradient-divided", run(), converted(_factor(norm=1 / 3))),
    ("clipping-default", run(), converted(_clipped(1.0))),
    ("clipping-lost", _changed(run(), _clipped(1.5)), converted()),
    ("clipping-default", _changed(run(), _clipped(0.5)), converted(_clipped(1.0), setting={"clipping_written": False})),
    ("clipping-limit", run(), converted(_clipped(1.0), setting={"clipping_written": True})),
    ("clipping-limit", _changed(run(), _clipped(1.5)), converted(_clipped(1.0), setting={"clipping_written": True})),
    (
        "clipping-of-scaled-gradients",
        _changed(run(), _each(scale=65536.0, limit=1.0, applied=1.0 / 65536)),
        converted(_clipped(1.0)),
    ),
    ("schedule-stands-still", run(), rates(converted(), [0.1] * 8)),
    ("schedule-too-fast", run(), rates(converted(), _schedule(2))),
    (
        "schedule-too-fast",
        rates(run(), PER_EPOCH),
        rates(converted(setting={"engine_scheduler": "StepLR"}), _schedule(1)),
    ),
    ("schedule-too-slow", run(), rates(converted(), _schedule(0.5))),
    ("schedule-shifted", run(), rates(converted(), [0.1, *_schedule(1)[:-1]])),
    ("rate-multiplied", run(), rates(converted(), [2 * rate for rate in _schedule(1)])),
    ("other-schedule", run(), rates(converted(), [0.1 - 0.007 * index for index in range(8)])),
    ("step-beside-the-engine", run(), converted(_from(1, lambda one: replace(one, outside=1, loss=3.0)))),
    ("other-optimizer", run(), converted(lambda one: replace(one, optimizer="AdamW", loss=one.loss + one.index))),
    (
        "optimizer-settings",
        run(),
        converted(lambda one: replace(one, groups=({**one.groups[0], "weight_decay": 0.0},))),
    ),
    ("steps-skipped", run(), converted(lambda one: replace(one, skipped=one.index == 0))),
    ("weights-stand-still", run(), converted(_from(1, _factor(1.3)), end=(weights(1), weights(1)))),
    ("weights-changed-late", run(), converted(_from(1, _factor(1.3)), setting={"master_apart": 0.1})),
    ("unused-parameters", _changed(run(), _each(idle=(frozenset({"a"}),) * 2)), converted(_from(1, _factor(1.3)))),
    ("data-dependent-branch", _changed(run(), _each(idle=(frozenset("a"), frozenset("b")))), converted(_factor(1, 2))),
    ("epochs", run(), converted(steps=6)),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "before", "after"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_a_signature_is_named_first(wanted: str, before: Run, after: Run) -> None:
    found = compare(before, after)
    named = [(cause.id, cause.why) for cause in found.causes]
    if wanted == "gradient-added-up":  # the step beside the engine is the cause, this is what it does
        assert wanted in [name for name, _ in named]
        return
    assert named, found.differences
    assert named[0][0] == wanted, named


def test_every_signature_has_a_case() -> None:
    assert {one.id for one in signatures()} == {wanted for wanted, _, _ in CASES}


def test_the_titles_and_names_are_told_apart() -> None:
    found = signatures()
    assert len({one.id for one in found}) == len(found)
    assert len({one.title for one in found}) == len(found)


def test_nothing_is_named_where_nothing_parts() -> None:
    """A limit that never bites, other names of the same optimizer, other counts of a scheduler."""
    quiet = converted(lambda one: replace(one, limit=100.0, optimizer="FusedAdam", schedulers=2))
    assert compare(_changed(run(), _each(optimizer="AdamW")), quiet).causes == ()


def test_what_cannot_explain_the_first_difference_is_not_named_first() -> None:
    """A clip at 1.0 does not change the learning rate of step 3, but the clipped norm of step 6."""
    both = rates(converted(_from(5, _clipped(1.0))), [*_schedule(1)[:3], *[0.2] * 5])
    named = [(cause.id, cause.quantity) for cause in compare(run(), both).causes]
    assert named == [("other-schedule", "learning rate"), ("clipping-default", "clipped gradient norm")]


def test_a_clip_that_does_not_bite_yet_is_no_cause() -> None:
    small = _changed(run(), _factor(norm=0.1))
    found = compare(
        small,
        replace(converted(_from(2, _factor(1.3, 0.1))), steps=small.steps[:2] + converted(_factor(1.3, 0.1)).steps[2:]),
    )
    assert all(cause.id != "clipping-default" for cause in found.causes)


def test_loss_factors_need_the_same_ratio_exactly() -> None:
    found = compare(run(), converted(_factor(0.52)))
    assert [cause.id for cause in found.causes] == ["other-loss"]


def test_a_bad_conversion_of_no_known_kind_has_no_cause() -> None:
    def odd(one: Step) -> Step:
        return replace(one, norm=(one.norm or 0) * 1.37, norms=(4.11, 4.11)) if one.index > 2 else one

    found = compare(run(), converted(odd))
    assert not found.agrees
    assert found.causes == ()


def test_a_run_without_records_has_no_cause() -> None:
    assert compare(run(), replace(converted(), steps=(), start=Weights(), end=())).causes == ()


def _both(one: Callable[[Step], Step], other: Callable[[Step], Step]) -> Callable[[Step], Step]:
    return lambda found: other(one(found))


PAIRS = [
    ({"loss-divided-by-world-size", "clipping-default"}, run(), converted(_both(_factor(0.5, 0.5), _clipped(1.0)))),
    ({"loss-divided-by-world-size", "gradient-divided"}, run(), converted(_factor(0.5, 0.5 / 3))),
    (
        {"loss-divided-by-world-size", "epoch-order"},
        run(),
        converted(_both(_factor(0.5, 0.5), lambda one: replace(one, data=step(one.index % 4).data))),
    ),
    (
        {"loss-divided-by-world-size", "accumulation-window"},
        run(),
        converted(_both(_factor(0.5), lambda one: replace(one, backwards=1, samples=8, first=(one.first or 0) / 2))),
    ),
    (
        {"loss-divided-by-world-size", "schedule-stands-still"},
        run(),
        rates(converted(_factor(0.5, 0.5)), [0.1] * 8),
    ),
    (
        {"optimizer-settings", "schedule-stands-still"},
        run(),
        rates(converted(_each(groups=({**step(0).groups[0], "momentum": 0.0},))), [0.1] * 8),
    ),
    (
        {"weights-changed-late", "clipping-lost"},
        _changed(run(), _clipped(1.5)),
        converted(_from(1, _factor(1.2)), setting={"master_apart": 0.1}),
    ),
]


@pytest.mark.parametrize(("wanted", "before", "after"), PAIRS, ids=[" and ".join(sorted(pair[0])) for pair in PAIRS])
def test_both_causes_are_named(wanted: set[str], before: Run, after: Run) -> None:
    found = compare(before, after)
    assert {cause.id for cause in found.causes} == wanted, found.causes


def test_what_follows_from_a_cause_is_not_one_more() -> None:
    """Half of the batch gives other inputs, and another number of steps."""
    half = converted(lambda one: replace(one, samples=12, data=(batch(90), batch(91)), loss=one.loss * 1.1), steps=6)
    assert [cause.id for cause in compare(run(), half).causes] == ["batch-size"]


def test_parameters_that_no_rank_uses_are_moved_by_momentum_only_after_they_were_used() -> None:
    def idle(one: Step) -> Step:
        names = frozenset({"layer.bias"} if one.index in {0, 3} else ())
        return replace(one, idle=(names,) * 2, groups=({"lr": 0.1, "momentum": 0.9},))

    def plain(one: Step) -> Step:
        return replace(idle(one), groups=({"lr": 0.1},))

    late = converted(_both(idle, _from(4, _factor(1.1))))
    (cause,) = compare(_changed(run(), idle), late).causes
    assert cause.id == "unused-parameters"
    assert cause.why.startswith("at step 4 no rank uses layer.bias")
    assert not compare(_changed(run(), plain), converted(_both(plain, _from(4, _factor(1.1))))).causes
    zero = replace(late, setting={**late.setting, "zero_stage": 0})
    apart = _changed(run(), _each(idle=(frozenset({"a"}), frozenset()), groups=({"lr": 0.1},)))
    assert not any(cause.id == "data-dependent-branch" for cause in compare(apart, zero).causes)
