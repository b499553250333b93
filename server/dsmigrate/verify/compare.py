"""Compares two runs, quantity by quantity, in the order in which one leads to the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dsmigrate.verify import distance
from dsmigrate.verify.causes import explain
from dsmigrate.verify.causes.evidence import ROUNDED
from dsmigrate.verify.model import SILENT, Comparison, Difference, Noise, Run, Step
from dsmigrate.verify.tolerance import Tolerance, choose, scaled

ENGINE = "engine"
INPUTS = "inputs"
NEAR_ZERO = 1e-3
"""Losses and norms below this share of the first one are compared with that share, not with themselves."""

SAME = 1e-3
"""Ranks whose gradient norms lie no further apart than this, relatively, have the same gradients."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something of a step that is compared; ``of`` gives None where a run does not have it, and for the inputs."""

    name: str
    of: Callable[[Step], float | tuple[float, ...] | None]


QUANTITIES = (
    Quantity("samples", lambda step: float(step.samples)),
    Quantity("backwards", lambda step: float(step.backwards)),
    Quantity(INPUTS, lambda _: None),
    Quantity("learning rate", lambda step: step.rates),
    Quantity("weight decay", lambda step: tuple(float(group.get("weight_decay", 0.0)) for group in step.groups)),
    Quantity("loss", lambda step: step.loss),
    Quantity("skipped", lambda step: float(step.skipped)),
    Quantity("gradient norm", lambda step: None if step.skipped else step.norm),
    Quantity("clipped gradient norm", lambda step: None if step.skipped else step.applied),
)


def compare(
    original: Run, converted: Run, factor: float = 1.0, *, is_conversion: bool = True, noise: Noise = SILENT
) -> Comparison:
    """Return where two runs part, and why that is likely.

    ``factor`` multiplies every tolerance; ``is_conversion`` says that the second has to train with an engine. What the
    ``noise`` of the original explains is no difference.
    """
    allowed = scaled(choose(original, converted), factor)
    errors: dict[str, list[float]] = {}
    found: dict[str, Difference] = {}
    excused: dict[str, Difference] = {}

    def take(difference: Difference) -> None:
        if difference.error <= difference.allowed:
            return
        limit = noise.limit(difference.quantity, difference.step)
        if difference.error <= limit:
            excused.setdefault(difference.quantity, difference)
        else:
            found.setdefault(difference.quantity, replace(difference, allowed=max(limit, difference.allowed)))

    for before, after in zip(original.steps, converted.steps, strict=False):
        for quantity in QUANTITIES:
            difference = _at(quantity, before, after, original, allowed)
            if difference is not None:
                errors.setdefault(quantity.name, []).append(difference.error)
                take(difference)
    engine = _engine(converted) if is_conversion else ()
    for difference in (*engine, *_length(original, converted), *_weights(original, converted, allowed)):
        if difference.quantity == "weights":
            errors["weights"] = [difference.error]
        take(difference)
    order = [quantity.name for quantity in QUANTITIES]
    differences = sorted(found.values(), key=lambda one: _when(one, order))
    return Comparison(
        original,
        converted,
        allowed.name,
        tuple(differences),
        explain(original, converted, tuple(differences)) if differences else (),
        {name: max(of_steps) for name, of_steps in errors.items()},
        tuple(_notes(original, converted)),
        {name: tuple(of_steps) for name, of_steps in errors.items()},
        tuple(sorted(excused.values(), key=lambda one: _when(one, order))),
        noise,
    )


def relative(expected: float, actual: float, floor: float = 0.0) -> float:
    """Return the relative error, measured by at least ``floor``; 0 where neither is a number."""
    if math.isnan(expected) or math.isnan(actual):
        return 0.0 if math.isnan(expected) and math.isnan(actual) else math.inf
    if expected == actual:
        return 0.0
    scale = max(abs(expected), floor)
    return abs(expected - actual) / scale if scale and math.isfinite(scale) else math.inf


def _when(difference: Difference, order: list[str]) -> tuple[float, int]:
    if difference.quantity == ENGINE:
        return -1.0, 0
    step = math.inf if difference.step is None else difference.step
    return step, order.index(difference.quantity) if difference.quantity in order else len(order)


def _at(quantity: Quantity, before: Step, after: Step, original: Run, allowed: Tolerance) -> Difference | None:
    """Return how far a quantity lies apart at a step; None where one of the two does not have it."""
    if quantity.name == INPUTS:
        halved = any("16" in one.kind for step in (before, after) for row in step.data for one in row)
        limit = ROUNDED if halved else allowed.of("loss", before.index + 1)
        return Difference(INPUTS, before.index, None, None, distance.inputs(before, after), limit)
    expected, actual = quantity.of(before), quantity.of(after)
    if expected is None or actual is None:
        return None
    limit = allowed.of(quantity.name, before.index)
    if isinstance(expected, tuple) or isinstance(actual, tuple):
        error = _of_groups(expected, actual)
    else:
        first = quantity.of(original.steps[0])
        floor = NEAR_ZERO * abs(first) if isinstance(first, float) and math.isfinite(first) else 0.0
        error = relative(expected, actual, floor)
    return Difference(quantity.name, before.index, expected, actual, error, limit)


def _of_groups(expected: object, actual: object) -> float:
    """Compare the values of parameter groups; other groups with the same values are no difference."""
    if not isinstance(expected, tuple) or not isinstance(actual, tuple):
        return math.inf
    if len(expected) == len(actual):
        return max(map(relative, expected, actual), default=0.0)
    return 0.0 if set(expected) == set(actual) else math.inf


def _engine(converted: Run) -> Iterator[Difference]:
    if converted.steps and converted.setting.get("kind") == "plain":
        yield Difference(ENGINE, None, "DistributedDataParallel", "no DeepSpeed engine", math.inf, 0.0)


def _length(original: Run, converted: Run) -> Iterator[Difference]:
    if len(original.steps) != len(converted.steps):
        yield Difference(
            "number of steps",
            None,
            len(original.steps),
            len(converted.steps),
            math.inf,
            0.0,
            "optimizer steps until the end",
        )


def _weights(original: Run, converted: Run, allowed: Tolerance) -> Iterator[Difference]:
    if not original.end or not converted.end or len(original.steps) != len(converted.steps):
        return
    names, others = set(original.end[0].tensors), set(converted.end[0].tensors)
    shared = names & others
    if names != others and not shared:
        return
    found = list(distance.tensors(original, converted))
    moved = math.hypot(*(one.moved for one in found)) if found else 0.0
    apart = math.hypot(*(one.difference for one in found)) if found else 0.0
    error = apart / moved if moved else (math.inf if apart else 0.0)
    farthest = max(found, key=lambda one: one.difference).name if found else "none"
    yield Difference(
        "weights", None, 0.0, apart, error, allowed.weights,
        f"relative to how far training has moved them; farthest: {farthest}",
    )  # fmt: skip


def _notes(original: Run, converted: Run) -> Iterator[str]:
    """Yield what is worth knowing and no difference."""
    for run in (original, converted):
        for problem in run.problems:
            yield f"the {run.name} run: not measured: {problem}"
    if original.end and converted.end:
        buffers = distance.difference(original.end[0], converted.end[0], buffers=True)
        if buffers > NEAR_ZERO:
            yield (
                f"buffers (running statistics) of rank 0 differ by {buffers:.1e}: DDP broadcasts them before each "
                "forward, DeepSpeed does not; the training loss does not depend on them, evaluation does"
            )
    yield from _teaches_nothing(original)
    torn = next((step.index for step in original.steps if _spread(step.norms) > SAME), None)
    if torn is not None:
        yield (
            f"the ranks of the original have different gradients from step {torn + 1} on: they do not train one model, "
            "as after a forward that only some of them ran through DistributedDataParallel with gradients enabled"
        )
    broken = next((step.index for step in original.steps if not math.isfinite(step.loss)), None)
    if broken is not None:
        yield f"the loss of the original is not a finite number from step {broken + 1} on: equal is not right there"
    if any(step.norm is None and not step.skipped for step in converted.steps):
        yield "gradient norms of the converted script are not known at some steps and were not compared there"


def _spread(norms: tuple[float, ...]) -> float:
    """Return how far apart the largest and the smallest of the norms lie, relatively; 0 where one is no number."""
    if len(norms) < 2 or not all(map(math.isfinite, norms)) or not max(norms):
        return 0.0
    return (max(norms) - min(norms)) / max(norms)


def _teaches_nothing(original: Run) -> Iterator[str]:
    """Yield why an agreement with this original says little: nothing is trained in it."""
    if not original.steps:
        return
    advice = "and a wrong conversion would agree as well; other arguments or data would show more"
    if all(step.norm == 0.0 for step in original.steps):
        yield f"the gradient of the original is zero at every step: nothing is trained, {advice}"
    elif original.end and not distance.moved(original):
        yield f"training has not moved the weights of the original: nothing is trained, {advice}"
    elif len(original.steps) > 1 and len({step.loss for step in original.steps}) == 1:
        yield f"the loss of the original is the same at every step: it does not depend on what is trained, {advice}"
