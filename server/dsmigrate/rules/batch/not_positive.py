"""DS208: a batch key of 0 or less."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, is_elastic
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS208",
    "batch-not-positive",
    summary="A batch size, or the number of accumulation steps, is 0 or less.",
    why="DeepSpeed asserts that all three batch keys are greater than 0, the derived ones included, when it reads "
    "the config. 0 does not mean that the key is left out; `null` does.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_batch_assertion",),
    keys=(TOTAL, MICRO, STEPS),
    pains=(2,),
    examples=(
        Example(
            '{"train_batch_size": 8, "gradient_accumulation_steps": «0»}\n',
            fixed='{"train_batch_size": 8}\n',
        ),
        Example('{"train_micro_batch_size_per_gpu": «-1»}\n', accepted=False),
        Example('{"train_batch_size": 8, "gradient_accumulation_steps": 1}\n'),
        Example('{"train_batch_size": 8, "gradient_accumulation_steps": null}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the three that is a number and not above 0."""
    if is_elastic(context):
        return
    for path in (TOTAL, MICRO, STEPS):
        value = context.value(path)
        if isinstance(value, (int, float)) and value <= 0:
            others = any(isinstance(context.value(other), (int, float)) for other in (TOTAL, MICRO) if other != path)
            yield context.finding(
                path,
                say(
                    "{lower} is rejected: it has to be greater than 0; left out, it follows from the others",
                    lower=str(value).lower(),
                ),
                fixes=[context.remove(path, say("Remove `{path}`", path=path), safe=False)] if others else [],
            )
