"""DS265: a report every 0 steps."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_KEY = "steps_per_print"


@rule(
    "DS265",
    "steps-per-print-zero",
    summary="`steps_per_print` 0 is a division by zero at the first optimizer step.",
    why="The engine takes the step number modulo this key. 0 does not switch the reports off, it raises "
    "`ZeroDivisionError` at the first optimizer step; `null`, the default since 0.15.2, switches them off. "
    "Transformers and Accelerate overwrite the key, so nothing happens there.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:_take_model_step",),
    consumers=(Consumer.DEEPSPEED,),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "steps_per_print": «0»}\n',
            fixed='{"train_batch_size": 1}\n',
        ),
        Example('{"train_batch_size": 1, "steps_per_print": 10}\n'),
        Example('{"train_batch_size": 1, "steps_per_print": null}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {}, "steps_per_print": 0}\n',
            consumer=Consumer.ACCELERATE,  # which overwrites the key
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for 0."""
    value = context.value(_KEY)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0:
        yield context.finding(
            _KEY,
            say("0 is a ZeroDivisionError at the first optimizer step; leave the key out for no reports"),
            fixes=[context.remove(_KEY, say("Remove `{key}`", key=_KEY), safe=context.known.default(_KEY) is None)],
        )
