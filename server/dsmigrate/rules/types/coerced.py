"""DS126: a value of a wrong type that DeepSpeed converts."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document.edits import Spelling
from dsmigrate.knowledge import Key
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._checked import as_boolean, as_number
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import mend, place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS126",
    "converted-value",
    summary=(
        "A value of another type that DeepSpeed converts: a quoted number, a number for a switch, true for a number."
    ),
    why=(
        'Pydantic reads `"3"` as 3, `1` as true and `true` as 1. DeepSpeed means what the converted value says;'
        ' Transformers, Accelerate and your own code, which look at the file themselves, see the text. `"stage": true`'
        " is ZeRO stage 1, which few people mean."
    ),
    severity=Severity.INFO,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",),
    keys=("zero_optimization.stage", "bf16.enabled"),
    pains=(30,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «"3"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «true»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": «"true"»}}',
            fixed='{"train_batch_size": 8, "bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": «1»}}',
            fixed='{"train_batch_size": 8, "bf16": {"enabled": true}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value that is converted."""
    for entry, key, node, _ in verdicts(context, Kind.COERCED):
        value = node.value()
        read = _read(key, value)
        number = isinstance(value, bool)
        yield context.finding(
            entry,
            say(
                "{place} is {value}, which DeepSpeed reads as {read}",
                place=place(entry),
                value=shown_value(value),
                read=shown_value(read),
            ),
            severity=Severity.WARNING if number else None,
            fixes=[_fix(context, entry, key, value, read)],
        )


def _read(key: Key, value: object) -> object:
    if "boolean" in key.type:
        return as_boolean(value)
    read = as_number(value)
    return int(read) if read is not None and "integer" in key.type else read


def _fix(context: Context, entry: Entry, key: Key, value: object, read: object) -> Fix | None:
    if isinstance(value, str):
        return mend(context, entry, key, value, safe=True) or context.replace(
            entry, Spelling(json_text(read)), say("Write `{read}`", read=json_text(read)), safe=True
        )
    return context.replace(entry, read, say("Write `{read}`", read=json_text(read)), safe=True)
