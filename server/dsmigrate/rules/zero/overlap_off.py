"""DS430: stage 3 without overlap."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_off

_KEY = f"{ZERO}.overlap_comm"


@rule(
    "DS430",
    "no-overlap-at-stage-3",
    summary="`overlap_comm` false at stage 3, where it also keeps prefetching from hiding anything.",
    why="Left out, the key is on at stage 3. With `false` parameters are gathered on the stream that computes, so "
    "each gather "
    "is waited for, prefetched or not. Unlike at stage 1 and 2, switching it off saves no bucket.",
    severity=Severity.HINT,
    effect=Effect.SLOW,
    source=(
        "deepspeed/runtime/zero/config.py:overlap_comm_valid",
        "deepspeed/runtime/zero/parameter_offload.py:DeepSpeedZeRoOffload",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "overlap_comm": «false»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "overlap_comm": false}}\n'),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "overlap_comm": null}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where stage 3 is told not to overlap."""
    entry = switched_off(context, _KEY)
    if entry is None or context.stage != 3:
        return
    yield context.finding(
        entry,
        say("false makes stage 3 wait for every gather of parameters; left out it is true here"),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=False)],
    )
