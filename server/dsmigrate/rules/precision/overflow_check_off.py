"""DS370: non-finite bf16 gradients that reach the weights."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import bf16_is_on, bf16_path, uses_bf16_optimizer
from dsmigrate.rules.registry import rule

_NAME = "check_grad_overflow"


@rule(
    "DS370",
    "overflow-check-off",
    summary="`bf16.check_grad_overflow` false lets a step with inf or NaN gradients happen.",
    why="At ZeRO 1 and 2 the check makes all ranks skip a step whose gradients are not finite. Without it one bad "
    "batch writes NaN into the weights. It was off by default before 0.19.3; it costs one pass over the gradients "
    "and a small all-reduce. ZeRO 3 and the other optimizer wrappers skip in any case.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:step", "https://github.com/deepspeedai/DeepSpeed/issues/5242"),
    since="0.17.1",
    keys=("bf16.check_grad_overflow",),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "check_grad_overflow": «false»}, '
            '"zero_optimization": {"stage": 2}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true, "check_grad_overflow": true}, '
            '"zero_optimization": {"stage": 2}}\n',
        ),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}\n'),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "check_grad_overflow": false}, '
            '"zero_optimization": {"stage": 3}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": false, "check_grad_overflow": false}, '
            '"zero_optimization": {"stage": 2}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the check is switched off where it counts."""
    path = bf16_path(context, _NAME)
    if context.stage not in {1, 2} or uses_bf16_optimizer(context) or not bf16_is_on(context):
        return
    if context.document.node_at(path) is not None and bf16_is_on(context, _NAME) is False:
        yield context.finding(
            path,
            say("a step with inf or NaN gradients reaches the weights instead of being skipped"),
            fixes=[context.replace(path, True, say("Switch the check on"), safe=False)],  # noqa: FBT003 - the value of the key
        )
