"""DS300: fp16 and bf16 at once."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import BF16, FP16, bf16_is_on, bf16_path
from dsmigrate.rules.registry import rule


@rule(
    "DS300",
    "fp16-and-bf16",
    summary="`fp16.enabled` and `bf16.enabled` are both true.",
    why="The two modes exclude each other: DeepSpeed stops with `bfloat16 and fp16 modes cannot be simultaneously "
    "enabled` while it reads the config. `bfloat16` is the old name of `bf16` and read only while that is absent or "
    "null.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_initialize_params",),
    keys=(FP16, BF16),
    pains=(32,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": «true»}, '
            '"bf16": {"enabled": true}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": false}, '
            '"bf16": {"enabled": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": «1»}, '
            '"bfloat16": {"enabled": "true"}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": false}, '
            '"bfloat16": {"enabled": "true"}}\n',
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": false}}\n'),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": false}, '
            '"bfloat16": {"enabled": true}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {}, "fp16": {"enabled": "auto"}, '
            '"bf16": {"enabled": true}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at `fp16.enabled` when both modes are on for certain."""
    if context.is_on(FP16) and bf16_is_on(context):
        other = bf16_path(context, "enabled")
        yield context.finding(
            FP16,
            say("DeepSpeed rejects fp16 together with {other}; keep one of them", other=shown(other)),
            fixes=[
                context.replace(FP16, False, say("Switch fp16 off"), safe=False),  # noqa: FBT003 - the value of the key
                context.replace(other, False, say("Switch bf16 off"), safe=False),  # noqa: FBT003 - the value of the key
            ],
            related=[(other, say("bf16 is switched on here"))],
        )
