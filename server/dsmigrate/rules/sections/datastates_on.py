"""DS915: a `datastates_ckpt` section that is meant to be off, or that another writer replaces."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS915",
    "datastates-on",
    summary="`datastates_ckpt` is on for every value but `false`, and off when `checkpoint.writer` is there.",
    why='There is no `enabled` key: `{}`, `null` and `{"enabled": false}` all switch the DataStates engine on, '
    "which needs the package `datastates` (RuntimeError without it). A `checkpoint.writer` section has "
    "priority, and this one then does nothing.",
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=(
        "deepspeed/datastates/config.py:DeepSpeedDataStatesConfig",
        "deepspeed/runtime/checkpoint_engine/utils.py:create_checkpoint_engine",
    ),
    since="0.18.1",
    keys=("datastates_ckpt",),
    examples=(
        Example(
            '{"train_batch_size": 8, «"datastates_ckpt"»: {"enabled": false}}',
            fixed='{"train_batch_size": 8}',
        ),
        Example('{"train_batch_size": 8, «"datastates_ckpt"»: null}', fixed='{"train_batch_size": 8}'),
        Example('{"train_batch_size": 8, "datastates_ckpt": false}'),
        Example(
            '{"train_batch_size": 8, "datastates_ckpt": {"host_cache_size": 16}}',
            accepted=None,  # needs the package datastates
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a section that says no and means yes, or that is overridden."""
    entry = context.entry("datastates_ckpt")
    if entry is None or entry.node is None:
        return
    value = entry.node.value()
    says_no = value is None or (isinstance(value, dict) and value.get("enabled") is False)
    if says_no:
        yield context.finding(
            entry,
            say("Every value but `false` switches DataStates checkpoints on, this one too"),
            part="key",
            fixes=[context.remove(entry, say("Remove `datastates_ckpt`"), safe=False)],
        )
    writer = context.entry("checkpoint.writer")
    if not says_no and value is not False and writer is not None and isinstance(writer.node, Object):
        yield context.finding(
            entry,
            say("`checkpoint.writer` has priority, so this section does nothing"),
            part="key",
            effect=Effect.OVERRIDDEN,
            related=[(writer, say("the writer that is used"))],
        )
