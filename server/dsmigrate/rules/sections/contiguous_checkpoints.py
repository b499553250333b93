"""DS909: `contiguous_memory_optimization` without the two keys that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTION = "activation_checkpointing"


@rule(
    "DS909",
    "contiguous-checkpoints-incomplete",
    summary="`contiguous_memory_optimization` without `partition_activations` or without `number_checkpoints`.",
    why="`deepspeed.checkpointing.configure` asserts both, so that the script stops where it sets activation "
    "checkpointing up. A script that never calls it ignores the section.",
    severity=Severity.INFO,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/activation_checkpointing/checkpointing.py:configure",),
    keys=(f"{_SECTION}.contiguous_memory_optimization", f"{_SECTION}.number_checkpoints"),
    examples=(
        Example(
            '{"train_batch_size": 8, "activation_checkpointing": '
            '{"partition_activations": true, "contiguous_memory_optimization": «true»}}',
        ),
        Example(
            '{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true, '
            '"contiguous_memory_optimization": true, "number_checkpoints": 24}}'
        ),
        Example('{"train_batch_size": 8, "activation_checkpointing": {"contiguous_memory_optimization": false}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when one of the two is missing."""
    path = f"{_SECTION}.contiguous_memory_optimization"
    if not context.is_on(path) or context.raw(path) == "auto":
        return
    missing = [
        name
        for name, given in (
            ("partition_activations", context.is_on(f"{_SECTION}.partition_activations")),
            ("number_checkpoints", context.value(f"{_SECTION}.number_checkpoints") is not None),
        )
        if not given
    ]
    if missing:
        yield context.finding(
            path,
            say(
                "`deepspeed.checkpointing.configure` stops without {missing}, here or as an argument of the call",
                missing=say(" and ").join(f"`{name}`" for name in missing),
            ),
        )
