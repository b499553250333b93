"""DS105: a key that a later release began to read."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.keys._shared import is_gone, refuses, section_of
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed


@rule(
    "DS105",
    "newer-key",
    summary="A key that came with a later release than the one that is installed or aimed at.",
    why=(
        "An older DeepSpeed treats the key as any unknown one: a section that is a pydantic model rejects the config,"
        " the others ignore it."
    ),
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",),
    pains=(15,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, «"zero_hpz_partition_size"»: 1}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            version="0.9.5",
            accepted=None,  # the judge is the newest release
        ),
        Example(
            '{"train_batch_size": 8, «"torch_autocast"»: {"enabled": false}}',
            fixed='{"train_batch_size": 8}',
            version="0.17.0",
            accepted=None,  # the judge is the newest release
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that is not there yet, and not inside one that is not."""
    for entry in context.entries:
        key = entry.key
        if key is None or key.status is not Status.NOT_YET or is_shadowed(context, entry.path):
            continue
        if is_gone(context, entry.path[:-1]):
            continue
        refused = refuses(context, section_of(context, entry.path), entry)
        does = say("rejects the config for it") if refused else say("ignores it")
        yield context.finding(
            entry,
            say(
                "{path} came with DeepSpeed {since}; {known_version} {does}",
                path=shown(entry.path),
                since=key.since,
                known_version=context.known.version,
                does=does,
            ),
            part="key",
            severity=Severity.ERROR if refused else None,
            effect=Effect.REJECTED if refused else None,
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=not refused)],
        )
