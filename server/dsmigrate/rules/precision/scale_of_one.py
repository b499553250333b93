"""DS314: a loss scale of 1, which is none."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import DYNAMIC, FP16, given
from dsmigrate.rules.registry import rule


@rule(
    "DS314",
    "loss-scale-of-one",
    summary="`fp16.loss_scale` 1 is a fixed scale of 1, not the dynamic mode.",
    why="0 means dynamic; any positive number stays for the whole run. 1 multiplies by nothing, so gradients below "
    "the range of float16 become 0, which is what the loss scale is there to prevent.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:dynamic_loss_scale",),
    keys=(DYNAMIC,),
    pains=(6,),
    examples=(
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": «1»}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 0}, '
            '"zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 0}, "zero_optimization": {"stage": 1}}\n'
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false, "loss_scale": 1}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a scale of 1 while fp16 is on."""
    if given(context, DYNAMIC) is None or not context.is_on(FP16) or isinstance(context.raw(DYNAMIC), bool):
        return
    if context.number(DYNAMIC) == 1:
        yield context.finding(
            DYNAMIC,
            say("1 is a fixed scale that multiplies by nothing, so small gradients vanish; 0 is the dynamic mode"),
            fixes=[context.replace(DYNAMIC, 0, say("Use the dynamic loss scale"), safe=False)],
        )
