"""The loss itself is another one."""

from __future__ import annotations

import math

from dsmigrate.verify.causes.evidence import Evidence, is_ratio
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.numbers import shown, told_apart


@signature(
    "loss-divided-by-accumulation",
    "the loss is divided by the number of micro-batches twice, or not at all",
    advice="engine.backward divides by gradient_accumulation_steps: either the script divides or the config has the number",
    explains=("loss",),
)
def accumulation_factor(evidence: Evidence) -> str | None:
    found = evidence.loss_ratio()
    steps = int(evidence.setting("gradient_accumulation_steps", 1))
    said = f"the loss behind backward is {shown(found)} times the original's"
    if steps > 1 and is_ratio(found, 1 / steps):
        return f"{said}: gradient_accumulation_steps is {steps} in the config, and the script divides as well"
    count = evidence.a.backwards
    if count > 1 and is_ratio(found, count):
        return f"{said}, and a step has {count} backwards: nobody divides"
    if count > 1 and is_ratio(found, 1 / count):
        return f"{said}, and a step has {count} backwards: it is divided twice"
    return None


@signature(
    "loss-divided-by-world-size",
    "the loss is divided (or multiplied) by the number of processes",
    advice="the engine averages gradients over the processes, as DDP does: take the loss as it is",
    explains=("loss",),
)
def world_factor(evidence: Evidence) -> str | None:
    found = evidence.loss_ratio()
    if evidence.ranks > 1 and (is_ratio(found, evidence.ranks) or is_ratio(found, 1 / evidence.ranks)):
        return (
            f"the loss behind backward is {shown(found)} times the original's, and there are {evidence.ranks} processes"
        )
    return None


@signature(
    "loss-scaled-twice",
    "the loss is still multiplied with a loss scale",
    advice="either the script's GradScaler or DeepSpeed's fp16 section scales the loss, not both",
    explains=("loss",),
)
def loss_scale(evidence: Evidence) -> str | None:
    found = evidence.loss_ratio()
    if found is None or found <= 0:
        return None
    power = math.log2(found)
    if abs(power) > 5.5 and abs(power - round(power)) < 0.01:
        return f"the loss behind backward is 2^{round(power)} times the original's, which is what loss scales are"
    return None


@signature(
    "loss-multiplied",
    "the loss is multiplied by a constant",
    advice="look at what stands between the criterion and backward",
    fallback=True,
    explains=("loss",),
)
def constant_factor(evidence: Evidence) -> str | None:
    found = evidence.loss_ratio()
    if found is None or evidence.index or not evidence.same_data() or math.isclose(found, 1, rel_tol=0.02):
        return None
    if math.isclose(found, -1, rel_tol=1e-4):
        return "the first loss has the other sign, from the same weights and data"
    for whole in range(2, 129):
        if is_ratio(found, whole, 1e-4) or is_ratio(found, 1 / whole, 1e-4):
            return f"the first loss is {shown(found)} times the original's, from the same weights and data"
    return None


@signature(
    "other-loss",
    "the loss is computed in another way",
    advice="weights, data and mode are the same, so the difference is in the forward or the criterion: what is inside of "
    "the autocast region, the reduction, a term that is missing",
    fallback=True,
    explains=("loss",),
)
def other_loss(evidence: Evidence) -> str | None:
    if evidence.index or not evidence.same_data() or not evidence.same_start() or _drawn_apart(evidence):
        return None
    before, after = told_apart(evidence.a.loss, evidence.b.loss)
    return f"the first loss is {after} instead of {before} for the same weights and inputs"


def _drawn_apart(evidence: Evidence) -> bool:
    return evidence.a.random != evidence.b.random
