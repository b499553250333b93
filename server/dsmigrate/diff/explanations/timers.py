"""The timers of the engine: what they print, and what it costs to read them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_KEY = "wall_clock_breakdown"


@explanation(
    "DF912",
    "timers",
    summary="The timers around forward, backward, reduction and step are switched on or off.",
    why=(
        "Rank 0 prints the times after every `step()`, whatever `steps_per_print` says. Reading a timer waits for the"
        " device, which takes away what would overlap. A monitor gets the totals of each optimizer step."
    ),
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine.step", "deepspeed/utils/timer.py:SynchronizedWallClockTimer"),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "wall_clock_breakdown": true}',
            "The times of forward, backward, reduction and step are printed in every pass, which waits for the device",
            paths=(_KEY,),
            effects=(Effect.SPEED, Effect.OBSERVABILITY),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "wall_clock_breakdown": true}',
            '{"train_batch_size": 8, "wall_clock_breakdown": false}',
            "The times of forward, backward, reduction and step are no longer printed, and nothing waits for them",
        ),
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true}}',
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true}, "wall_clock_breakdown": true}',
            "",  # they are on with the profiler
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true}}',
            "",  # told with the profiler
        ),
    ),
    last=True,
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield whether the engine times itself now."""
    before, after = pair.old.is_on(_KEY), pair.new.is_on(_KEY)
    if pair.change(_KEY) is None or _KEY in pair.claimed or before is after or None in (before, after):
        return
    yield pair.says(
        _KEY,
        effects=(Effect.SPEED, Effect.OBSERVABILITY),
        severity=Severity.INFO,
        message=say(
            "The times of forward, backward, reduction and step are printed in every pass, which waits for the device"
        )
        if after
        else say(
            "The times of forward, backward, reduction and step are no longer printed, and nothing waits for them"
        ),
        brief=say("timers on") if after else say("timers off"),
    )
