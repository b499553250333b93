"""DS115: one key under two names."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Path
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.keys._shared import HERE, refuses, section_of
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS115",
    "two-names",
    summary="One key is given under two of its names.",
    why=(
        "`stage3_max_live_parameters` and `max_live_parameters` are one key; with both, DeepSpeed takes the first name"
        " and rejects the second as an unknown one, although it knows it. Of `bf16` and `bfloat16` it reads `bf16`"
        " alone and drops the other without a look: `bfloat16.enabled: true` beside `bf16.enabled: false` trains in"
        " fp32."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig",
        "deepspeed/runtime/precision_config.py:get_bfloat16_config",
    ),
    keys=("bfloat16", "zero_optimization.stage3_max_live_parameters", "tensor_parallel.tp"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage3_max_live_parameters": 1,'
            ' «"max_live_parameters"»: 2}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage3_max_live_parameters": 1}}',
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": false}, «"bfloat16"»: {"enabled": false}}',
            fixed='{"train_batch_size": 8, "bf16": {"enabled": false}}',
        ),
        Example(
            '{"train_batch_size": 8, "tensor_parallel": {«"tensor_parallel"»: {"tp_size": 1}, "tp": {"tp_size": 1}}}',
            fixed='{"train_batch_size": 8, "tensor_parallel": {"tp": {"tp_size": 1}}}',
        ),
        Example('{"train_batch_size": 8, "bf16": null, "bfloat16": {"enabled": false}}'),
        Example('{"train_batch_size": 8, "zero_optimization": {"max_live_parameters": 2}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the name that loses."""
    groups: dict[tuple[Path, str], list[Entry]] = {}
    for entry in context.entries:
        if entry.key is not None and entry.key.status in HERE and entry.node is not None:
            groups.setdefault((entry.path[:-1], entry.key.alias_of or entry.key.path), []).append(entry)
    for (_, name), group in groups.items():
        if len(group) == 1:
            continue
        first = next((entry for entry in group if entry.name == name.rpartition(".")[2]), group[0])
        for entry in group:
            if entry.name != first.name and not _absent(context, first) and not _absent(context, entry):
                yield _finding(context, entry, first)


def _finding(context: Context, entry: Entry, first: Entry) -> Finding:
    refused = refuses(context, section_of(context, entry.path))
    does = say("rejects it as an unknown key") if refused else say("reads `{first_name}` alone", first_name=first.name)
    return context.finding(
        entry,
        say(
            "`{name}` is another name of `{first_name}`, which is there too: DeepSpeed {does}",
            name=entry.name,
            first_name=first.name,
            does=does,
        ),
        part="key",
        severity=None if refused else Severity.WARNING,
        effect=None if refused else Effect.IGNORED,
        fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
        related=[(first, say("the other name"))],
    )


def _absent(context: Context, entry: Entry) -> bool:
    """Return whether DeepSpeed takes the key for absent: "auto" in a checked section, null at the top."""
    value = None if entry.node is None else entry.node.value()
    return value == "auto" or (value is None and not refuses(context, section_of(context, entry.path)))
