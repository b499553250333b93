"""DS944: `steps_per_print` of 0, a division by zero."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS944",
    "steps-per-print-zero",
    summary="`steps_per_print` of 0, which does not mean never: the first step divides by it.",
    why="The engine takes the step count modulo `steps_per_print`: `ZeroDivisionError: integer modulo by zero`. "
    "Without the key, or with `null`, nothing is printed since 0.15.2.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._take_model_step",),
    consumers=(Consumer.DEEPSPEED,),
    keys=("steps_per_print",),
    examples=(
        Example('{"train_batch_size": 8, «"steps_per_print": 0»}', fixed='{"train_batch_size": 8}'),
        Example('{"train_batch_size": 8, "steps_per_print": 1}'),
        Example('{"train_batch_size": 8, "steps_per_print": null}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a zero."""
    value = context.raw("steps_per_print")
    if isinstance(value, (int, float)) and value == 0:
        yield context.finding(
            "steps_per_print",
            f"{value} does not mean never: the first step divides by it and training stops",
            part="member",
            fixes=[context.remove("steps_per_print", "Remove `steps_per_print`", safe=True)],
        )
