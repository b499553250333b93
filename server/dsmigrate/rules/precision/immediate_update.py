"""DS372: a switch of BF16_Optimizer, which is not used."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.precision._shared import (
    ACCUMULATION,
    bf16_is_on,
    bf16_path,
    mode,
    uses_bf16_optimizer,
)
from dsmigrate.rules.registry import rule

_NAME = "immediate_grad_update"


@rule(
    "DS372",
    "immediate-update-ignored",
    summary="`bf16.immediate_grad_update` is read by `BF16_Optimizer` only, which this config does not use.",
    why="`BF16_Optimizer` comes with ZeRO 1, `data_types.grad_accum_dtype` fp32 and no CPU offload, or with a bf16 "
    "pipeline without ZeRO. Every other optimizer wrapper ignores the switch.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/bf16_optimizer.py:BF16_Optimizer",),
    since="0.13.3",
    keys=("bf16.immediate_grad_update",),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, «"immediate_grad_update"»: true}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "immediate_grad_update": true}, '
            '"zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "immediate_grad_update": true}, '
            '"pipeline": {"activation_checkpoint_interval": 1}}\n'
        ),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true, "immediate_grad_update": false}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the switch at stage 0 or 1; at 2 and 3 the rule about stages tells."""
    path = bf16_path(context, _NAME)
    if context.stage not in {0, 1} or mode(context) != "bf16" or context.document.node_at(path) is None:
        return
    pipeline = context.stage == 0 and context.raw("pipeline")
    if not bf16_is_on(context, _NAME) or uses_bf16_optimizer(context) or pipeline:
        return
    if context.stage == 1 and context.device("offload_optimizer") is None:
        return
    yield context.finding(
        path,
        say(
            "does nothing: only BF16_Optimizer reads it, which takes stage 1, `{accumulation}` fp32 and no CPU offload",
            accumulation=ACCUMULATION,
        ),
        part="key",
        fixes=[context.remove(path, say("Remove {path}", path=shown(path)), safe=True)],
        tags=[Tag.UNNECESSARY],
    )
