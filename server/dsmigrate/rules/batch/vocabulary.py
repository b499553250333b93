"""DS280: a vocabulary that tensor cores do not like."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_KEY = "vocabulary_size"
_ALIGNED = 8


@rule(
    "DS280",
    "vocabulary-not-aligned",
    summary="A `vocabulary_size` that is no multiple of 8.",
    why="DeepSpeed logs a warning for it when the config is read and does nothing else with the key. Matrix "
    "products with a dimension that 8 does not divide do not run at full speed on tensor cores; padding the "
    "embedding in the model helps, changing this number alone does not.",
    severity=Severity.HINT,
    effect=Effect.SLOW,
    source=("deepspeed/runtime/config.py:_do_warning_check",),
    keys=(_KEY,),
    examples=(
        Example('{"train_batch_size": 1, "vocabulary_size": «50257»}\n'),
        Example('{"train_batch_size": 1, "vocabulary_size": 50304}\n'),
        Example('{"train_batch_size": 1, "vocabulary_size": null}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a hint for a size that leaves a remainder."""
    value = context.value(_KEY)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value % _ALIGNED:
        yield context.finding(
            _KEY,
            say(
                "{value} is no multiple of {aligned}, which tensor cores want: pad the embedding, then this number",
                value=value,
                aligned=_ALIGNED,
            ),
        )
