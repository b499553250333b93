"""DS343: switches for master weights that BF16_Optimizer does not read."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.precision._shared import ACCUMULATION, MASTERS, low_masters, master_path, uses_bf16_optimizer
from dsmigrate.rules.registry import rule


@rule(
    "DS343",
    "masters-of-bf16-optimizer",
    summary="Low-precision master weights that `BF16_Optimizer` ignores.",
    why="With bf16 weights, `data_types.grad_accum_dtype` fp32, stage 1 and no CPU offload the engine takes "
    "`BF16_Optimizer` instead of ZeRO 1. It keeps fp32 master weights whatever the switches for low-precision ones "
    "say.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py:_do_optimizer_sanity_check",),
    keys=MASTERS,
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, «"bf16_master_weights_and_grads"»: true}, '
            '"zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, '
            '"zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, '
            '"bf16_optimizer_states": true}, "zero_optimization": {"stage": 1}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each switch that is on under BF16_Optimizer."""
    if not uses_bf16_optimizer(context):
        return
    on = low_masters(context)
    for key in (key for key in MASTERS if key in on):
        path = master_path(context, key)
        yield context.finding(
            path,
            say(
                "does nothing: `{accumulation}` fp32 at stage 1 brings BF16_Optimizer, which keeps fp32 masters",
                accumulation=ACCUMULATION,
            ),
            part="key",
            fixes=[context.remove(path, say("Remove {path}", path=shown(path)), safe=True)],
            tags=[Tag.UNNECESSARY],
            related=[(ACCUMULATION, say("with bf16 weights at stage 1 this brings BF16_Optimizer"))],
        )
