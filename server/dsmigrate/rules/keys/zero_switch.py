"""DS113: ``zero_optimization`` as a switch."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule

_KEY = "zero_optimization"


@rule(
    "DS113",
    "zero-as-switch",
    summary="The section `zero_optimization` is written as true or false, a form that is deprecated.",
    why=(
        "DeepSpeed warns, prints the whole schema, and takes true for stage 1, with the bucket size of the old"
        " top-level key `allgather_size`. Transformers and Accelerate look for a stage in it and fail."
    ),
    severity=Severity.WARNING,
    effect=Effect.CHANGED,
    source=("deepspeed/runtime/zero/config.py:read_zero_config_deprecated",),
    keys=("zero_optimization",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": «true»}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": «false»}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 0}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 1}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a switch."""
    value = context.raw(_KEY)
    if isinstance(value, bool):
        yield context.finding(
            _KEY,
            say(
                "this form is deprecated; DeepSpeed takes `{lower}` for stage {value}",
                lower=str(value).lower(),
                value=int(value),
            ),
            fixes=[
                context.replace(
                    _KEY,
                    {"stage": int(value)},
                    say("Write stage {value}", value=int(value)),
                    safe=not context.has("allgather_size"),
                )
            ],
            tags=[Tag.DEPRECATED],
        )
