"""The loss is right, and what backward leaves is not."""

from __future__ import annotations

import math

from dsmigrate.verify import distance
from dsmigrate.verify.causes.evidence import Evidence, is_ratio, ratio
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.model import Run, Step
from dsmigrate.verify.numbers import shown

_NORMS = ("gradient norm", "clipped gradient norm")
_LATER = (*_NORMS, "loss", "weights")
_APART = 1e-3


@signature(
    "gradient-gone",
    "there is no gradient when the engine steps",
    advice="engine.step() clears the gradients itself: call zero_grad before backward or not at all",
    explains=_LATER,
    certain=True,
)
def gradient_gone(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if before.norm and not before.skipped and after.norm is not None and after.norm <= 1e-12 * before.norm:
            return (
                f"the norm of the gradients is 0 at step {before.index + 1}, and {shown(before.norm)} in the original"
            )
    return None


@signature(
    "managed-accumulation",
    "DeepSpeed counts every backward as a step of its own",
    advice='"managed_gradient_accumulation": false (0.19.4 and later), engine.set_gradient_accumulation_boundary before '
    "each forward, or gradient_accumulation_steps as the window with engine.step() after every micro-batch",
    explains=_LATER,
    certain=True,
)
def managed_accumulation(evidence: Evidence) -> str | None:
    if not evidence.setting("managed") or int(evidence.setting("gradient_accumulation_steps", 1)) != 1:
        return None
    stage = int(evidence.setting("zero_stage", 0))
    if evidence.b.backwards < 2 or stage not in {1, 2}:
        return None
    return (
        f"a step has {evidence.b.backwards} backwards while gradient_accumulation_steps is 1: at ZeRO {stage} each backward "
        "is then taken for the last one before a step"
    )


@signature(
    "gradient-not-averaged",
    "gradients are not averaged over the processes",
    advice="engine.backward(loss) reduces gradients; loss.backward() or a step of another optimizer does not",
    explains=_LATER,
    certain=True,
)
def not_averaged(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if _spread(after) > _APART > _spread(before):
            norms = ", ".join(map(shown, after.norms))
            return f"at step {before.index + 1} the ranks of the conversion have gradients of different norm: {norms}"
    if _ranks_apart(evidence.converted) > _APART > _ranks_apart(evidence.original):
        return "at the end every rank of the conversion has other weights"
    return None


@signature(
    "gradient-kept",
    "gradients of the step before are still there",
    advice="call engine.step(), which clears them, or zero_grad after each step",
    explains=_LATER,
    certain=True,
)
def gradient_kept(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if after.carry and not before.carry:
            return (
                f"step {before.index + 1} begins with gradients of norm {shown(after.carry)}, in the original with none"
            )
    return None


@signature(
    "gradient-added-up",
    "the gradient grows from step to step, as if it were never cleared",
    advice="engine.step() clears the gradients; where something else steps, zero_grad must stay",
    explains=_NORMS,
)
def added_up(evidence: Evidence) -> str | None:
    if evidence.index != 1 or evidence.b.outside == 0:
        return None
    found = ratio(evidence.a.norm, evidence.b.norm)
    return f"its norm is {shown(found)} times the original's from the second step on" if found and found > 1.1 else None


@signature(
    "gradient-divided",
    "gradients are divided (or multiplied) once more",
    advice="engine.backward divides by gradient_accumulation_steps and averages over the processes: nothing else may",
    explains=_NORMS,
)
def gradient_factor(evidence: Evidence) -> str | None:
    found = ratio(evidence.a.norm, evidence.b.norm)
    by_loss = evidence.loss_ratio()
    if found is None or not by_loss or evidence.a.backwards != evidence.b.backwards:
        return None
    found /= abs(by_loss)  # the norm goes with the loss
    is_loss = math.isclose(abs(by_loss), 1, rel_tol=1e-3)
    said = "the loss is the same and the norm is" if is_loss else "besides the loss the norm is"
    candidates = {
        "the number of processes": evidence.ranks,
        "the number of backwards per step": evidence.a.backwards,
        "gradient_accumulation_steps": int(evidence.setting("gradient_accumulation_steps", 1)),
    }
    for name, count in candidates.items():
        if count > 1 and (is_ratio(found, count) or is_ratio(found, 1 / count)):
            return f"{said} {shown(found)} times the original's: {name} is {count}"
    power = math.log2(abs(found)) if found else 0.0
    if abs(power) > 5.5 and abs(power - round(power)) < 0.01:
        return f"the norm is 2^{round(power)} times the original's: gradients are still scaled for half precision"
    return None


def _spread(step: Step) -> float:
    """How far the norms that the ranks see lie apart, relatively."""
    if len(step.norms) < 2 or not max(step.norms):
        return 0.0
    spread = (max(step.norms) - min(step.norms)) / max(step.norms)
    return spread if math.isfinite(spread) else 0.0


def _ranks_apart(run: Run) -> float:
    return max((distance.difference(run.end[0], other) for other in run.end[1:]), default=0.0)
