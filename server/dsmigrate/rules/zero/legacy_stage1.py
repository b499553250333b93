"""DS418: the stage 1 of before 0.5.9."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, is_bf16_optimizer, switched_on

_KEY = f"{ZERO}.legacy_stage1"


@rule(
    "DS418",
    "legacy-stage1",
    summary="`legacy_stage1` asks for an implementation that is gone.",
    why="With `true` the engine raises when it builds the ZeRO optimizer, at every stage from 1 on. Only the "
    "optimizer that runs bf16 with fp32 accumulation at stage 1 never asks.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:_configure_zero_optimizer",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1, "legacy_stage1": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 1, "legacy_stage1": false}}\n'),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, '
            '"zero_optimization": {"stage": 1, "legacy_stage1": true}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the switch is on and ZeRO is, too."""
    entry = switched_on(context, _KEY)
    if entry is None or not context.stage or is_bf16_optimizer(context):
        return
    yield context.finding(
        entry,
        say("true stops the engine: the ZeRO stage 1 of before 0.5.9 is gone"),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=True)],
    )
