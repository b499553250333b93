"""DS120: a section that is no object."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Node
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS120",
    "section-not-an-object",
    summary="A section is null, a switch or a string, where DeepSpeed opens an object.",
    why=(
        '`"fp16": true` does not switch fp16 on, and `"fp16": null` does not leave it out: DeepSpeed unpacks the'
        " section without a look at it, so training ends in a bare `TypeError` or `AttributeError` that names no key. A"
        " few sections are kept as they are, and then do nothing."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/precision_config.py:get_float16_config",
        "deepspeed/runtime/config.py:get_optimizer_name",
    ),
    keys=("fp16", "bf16", "zero_optimization", "optimizer", "scheduler"),
    examples=(
        Example(
            '{"train_batch_size": 8, "fp16": «false»}', fixed='{"train_batch_size": 8, "fp16": {"enabled": false}}'
        ),
        Example('{"train_batch_size": 8, "fp16": «null»}', fixed='{"train_batch_size": 8}'),
        Example(
            '{"train_batch_size": 8, "optimizer": «"AdamW"»}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW"}}',
        ),
        Example('{"train_batch_size": 8, "timers": «"off"»}'),
        Example('{"train_batch_size": 8, "bf16": null, "aio": null, "zero_optimization": {"offload_param": null}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each section that is something else."""
    for entry, _, node, verdict in verdicts(context, Kind.SECTION):
        what = say(
            "{place} has to be {wanted}; {value}",
            place=place(entry),
            wanted=verdict.wanted,
            value=shown_value(node.value()),
        )
        refused = verdict.effect is Effect.REJECTED
        yield context.finding(
            entry,
            say("{what} ends in a bare TypeError or AttributeError", what=what)
            if refused
            else say("{what} is kept and does nothing", what=what),
            severity=verdict.severity,
            effect=verdict.effect,
            fixes=[_fix(context, entry, node)],
        )


def _fix(context: Context, entry: Entry, node: Node) -> Fix | None:
    value, path = node.value(), ".".join(map(str, entry.path))
    if value is None:
        return context.remove(entry, say("Remove {place}", place=place(entry)), safe=True)
    if isinstance(value, bool) and context.known.key(f"{path}.enabled") is not None:
        return context.replace(
            entry, {"enabled": value}, say("Write `{better}`", better=f'{{"enabled": {str(value).lower()}}}'), safe=True
        )
    if isinstance(value, str) and path in {"optimizer", "scheduler"}:
        return context.replace(
            entry, {"type": value}, say("Write `{better}`", better=f'{{"type": "{value}"}}'), safe=True
        )
    return None
