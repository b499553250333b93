"""DS122: a key that no config file can set."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS122",
    "unsettable-key",
    summary="A key whose type JSON cannot express: DeepSpeed rejects every value.",
    why=(
        "`tensor_parallel.dtype` takes a `torch.dtype` object, which only Python code can pass. Whatever a file holds "
        'there is a `ValidationError`, except `"auto"`, which is dropped.'
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/tensor_parallel/config.py:TPTrainingConfig",),
    keys=("tensor_parallel.dtype",),
    examples=(
        Example(
            '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 1, "dtype": «"bf16"»}}',
            fixed='{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 1}}',
        ),
        Example('{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 1}, "bf16": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the key with any value."""
    for entry, _, node, _ in verdicts(context, Kind.UNSETTABLE):
        yield context.finding(
            entry,
            say(
                "DeepSpeed rejects {value} and any other value: {place} cannot be set in a file; `bf16` and "
                "`fp16` choose the precision",
                value=shown_value(node.value()),
                place=place(entry),
            ),
            fixes=[context.remove(entry, say("Remove {place}", place=place(entry)), safe=True)],
        )
