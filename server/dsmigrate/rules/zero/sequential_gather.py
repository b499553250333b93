"""DS428: a prefetch bucket that the sequential gather replaces."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, given, switched_on

_KEY = f"{ZERO}.stage3_prefetch_bucket_size"
_SWITCH = f"{ZERO}.stage3_allgather_sequential"


@rule(
    "DS428",
    "prefetch-overridden",
    summary="`stage3_allgather_sequential` replaces `stage3_prefetch_bucket_size` by 1.",
    why="Gathering parameters one by one, the engine sets the prefetch bucket to 1 element, that is one parameter "
    "ahead, and "
    "says so only at the log level INFO.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/engine.py:_configure_zero_optimizer",),
    keys=(_SWITCH, _KEY),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "allgather_sequential": true, '
            '«"stage3_prefetch_bucket_size": 5e7»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3, "allgather_sequential": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "stage3_allgather_sequential": false, '
            '"stage3_prefetch_bucket_size": 5e7}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at a prefetch bucket beside the sequential gather."""
    entry = given(context, _KEY)
    if context.stage != 3 or entry is None or switched_on(context, _SWITCH) is None or context.number(_KEY) == 1:
        return
    yield context.finding(
        entry,
        say("{switch} replaces this value by 1", switch=shown(_SWITCH)),
        part="member",
        fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
        related=[(_SWITCH, say("switched on here"))],
        tags=[Tag.UNNECESSARY],
    )
