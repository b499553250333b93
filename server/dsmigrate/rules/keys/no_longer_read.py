"""DS111: a key that an earlier release read, and that this one does not."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Key, Status
from dsmigrate.knowledge.paths import name, parent
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.keys._shared import is_gone, refuses, section_of
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed


@rule(
    "DS111",
    "no-longer-read",
    summary="A key that an earlier release read: renamed or dropped since, and ignored or rejected now.",
    why=(
        "DeepSpeed seldom keeps an old name. In sections that ignore unknown keys the value simply stops to count,"
        " such as `aio.thread_count` since 0.16.4; in the others the config no longer loads."
    ),
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/constants.py", "deepspeed/runtime/swap_tensor/constants.py"),
    keys=("aio.intra_op_parallelism", "seq_parallel_communication_data_type"),
    examples=(
        Example(
            '{"train_batch_size": 8, "aio": {«"thread_count"»: 2}}',
            fixed='{"train_batch_size": 8, "aio": {"intra_op_parallelism": 2}}',
        ),
        Example(
            '{"train_batch_size": 8, "compile": {«"backend"»: "inductor"}}',
            fixed='{"train_batch_size": 8, "compile": {}}',
        ),
        Example('{"train_batch_size": 8, "aio": {"thread_count": 2}}', version="0.16.0", accepted=None),
        Example('{"train_batch_size": 8, "aio": {"intra_op_parallelism": 2}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that is gone, and not inside a section that is."""
    for entry in context.entries:
        key = entry.key
        if key is None or key.status is not Status.NO_LONGER or is_shadowed(context, entry.path):
            continue
        if is_gone(context, entry.path[:-1]):
            continue
        refused = refuses(context, section_of(context, entry.path), entry)
        does = say("rejects the config for it") if refused else say("does not read it any more")
        since = say("since {until} ", until=key.until) if key.until else ""
        instead = say("; write {map}", map=say(" or ").join(map(shown, key.successors))) if key.successors else ""
        yield context.finding(
            entry,
            say(
                "{since}DeepSpeed {does}: {path}{instead}",
                since=since,
                does=does,
                path=shown(entry.path),
                instead=instead,
            ),
            part="key",
            severity=Severity.ERROR if refused else None,
            effect=Effect.REJECTED if refused else None,
            fixes=_fixes(context, entry, key, refused=refused),
        )


def _fixes(context: Context, entry: Entry, key: Key, *, refused: bool) -> Iterator[Fix | None]:
    for successor in key.successors:
        if parent(successor) == key.parent:
            yield context.rename(entry, name(successor), say("Rename it to `{name}`", name=name(successor)), safe=False)
    yield context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=not refused)
