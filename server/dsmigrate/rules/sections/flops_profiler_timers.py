"""DS906: a flops profiler left on, whose timers run in every step."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS906",
    "flops-profiler-timers",
    summary="The flops profiler profiles one step, but turns the timers of `wall_clock_breakdown` on for all of them.",
    why="`wall_clock_breakdown` is combined with `flops_profiler.enabled` when the config is read: each phase of "
    "every step is timed with a device synchronization, and its log lines appear, long after the one profiled "
    "step.",
    severity=Severity.HINT,
    effect=Effect.SLOW,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    keys=("flops_profiler.enabled", "wall_clock_breakdown"),
    examples=(
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": «true», "profile_step": 5}}'),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": false}}'),
        Example('{"train_batch_size": 8, "wall_clock_breakdown": true, "flops_profiler": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a profiler that is on in a run that did not ask for timings."""
    if (
        context.raw("flops_profiler.enabled") is True
        and not context.is_on("wall_clock_breakdown")
        and not context.is_on("autotuning.enabled")
    ):
        yield context.finding(
            "flops_profiler.enabled",
            say(
                "The profiler also turns `wall_clock_breakdown` on, which synchronizes the device in every step; "
                "turn it off again after the measurement"
            ),
        )
