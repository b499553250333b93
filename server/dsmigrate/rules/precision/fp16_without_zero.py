"""DS302: fp16 without ZeRO, whose loss scale is not applied."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import FP16, bf16_is_on, mode
from dsmigrate.rules.registry import rule


@rule(
    "DS302",
    "fp16-without-zero",
    summary="fp16 at ZeRO stage 0: the step divides by a loss scale that the loss was never multiplied by.",
    why="Since 0.18.3 `engine.backward` leaves the scaling of the loss to the ZeRO optimizers. Without ZeRO nobody "
    "multiplies, but the fp16 optimizer still divides the gradients by the scale. SGD steps are too small by the "
    "scale (65536 at the start), clipping never bites, small gradients vanish, and Adam hides the fault behind its "
    "normalisation. Stage 1 scales correctly.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:backward", "deepspeed/runtime/fp16/fused_optimizer.py:FP16_Optimizer"),
    since="0.18.3",
    keys=(FP16, "zero_optimization.stage"),
    training=True,
    examples=(
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": «true»}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": «true»}, "zero_optimization": {"stage": 0}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n'),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false}}\n'),
        Example('{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 1}}\n'),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true}}\n', version="0.18.2", accepted=None
        ),  # older release
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when fp16 is on, ZeRO off and the scale not 1."""
    if (
        context.stage != 0
        or mode(context) != "fp16"
        or bf16_is_on(context)
        or context.number("fp16.loss_scale") == 1
        or context.raw("pipeline")
    ):
        return
    stage = "zero_optimization.stage"
    fix = (
        context.replace(stage, 1, say("Use ZeRO stage 1"), safe=False)
        if context.has(stage)
        else context.insert(("zero_optimization", "stage"), 1, say("Use ZeRO stage 1"), safe=False)
    )
    yield context.finding(
        FP16,
        say(
            "without ZeRO the loss is not multiplied by the loss scale, but gradients are divided by it: "
            "updates come out too small; use ZeRO stage 1 or bf16"
        ),
        fixes=[fix],
    )
