"""DS324: master weights in two formats."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import (
    BF16_MASTERS,
    FP16_MASTERS,
    low_masters,
    master_path,
    uses_bf16_optimizer,
)
from dsmigrate.rules.registry import rule


@rule(
    "DS324",
    "masters-in-two-formats",
    summary="Both `fp16_master_weights_and_grads` and `bf16_master_weights_and_grads` are on.",
    why="ZeRO keeps one master copy in one format and asserts that only one of the two is asked for, whichever mode "
    "is on.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/base_optimizer.py:_configure_master_weights",),
    since="0.18.3",
    keys=(FP16_MASTERS, BF16_MASTERS),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"fp16": {"fp16_master_weights_and_grads": «true»}, '
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "fp16": {}, '
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"fp16": {"fp16_master_weights_and_grads": false}, '
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the fp16 switch; stage 0 is told elsewhere."""
    if not context.stage or uses_bf16_optimizer(context) or not {FP16_MASTERS, BF16_MASTERS} <= low_masters(context):
        return
    other = master_path(context, BF16_MASTERS)
    yield context.finding(
        FP16_MASTERS,
        say("ZeRO refuses this together with {other}: there is one master copy", other=shown(other)),
        fixes=[context.remove(FP16_MASTERS, say("Remove `{fp16_masters}`", fp16_masters=FP16_MASTERS), safe=False)],
        related=[(other, say("asked for here as well"))],
    )
