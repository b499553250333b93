"""What in a config keeps ZeRO from running at a stage, and only the person can give up."""

from __future__ import annotations

from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules.context import Context

_FP16_NEEDS_ZERO = "0.18.3"


def conflict(context: Context, stage: int) -> str:
    """Return why a config cannot be changed to ``stage``, "" when nothing is known to be in the way."""
    if stage >= 2 and context.has("pipeline"):
        return say("the pipeline engine takes ZeRO stage 0 or 1")
    if stage == 3 and str(context.raw("gradient_allreduce_op")).lower() == "sum":
        return say("stage 3 refuses `gradient_allreduce_op` sum")
    optimizer = context.type_of("optimizer")
    if stage and optimizer is not None and optimizer.name in {"OneBitAdam", "OneBitLamb", "ZeroOneAdam"}:
        return say("{optimizer_name} excludes ZeRO", optimizer_name=optimizer.name)
    if stage and context.is_on("amp.enabled"):
        return say("`amp` excludes ZeRO")
    return fp16_without_zero(context) if not stage and context.is_on("fp16.enabled") else ""


def fp16_without_zero(context: Context) -> str:
    """Return why fp16 cannot be trained without ZeRO, "" for a release that can."""
    if order(context.known.version) < order(_FP16_NEEDS_ZERO):
        return ""
    return say("fp16 without ZeRO divides by a loss scale that the loss was never multiplied by")
