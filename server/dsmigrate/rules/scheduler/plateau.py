"""DS780: ReduceLROnPlateau, which gets a constant for its metric."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule, wraps_optimizer
from dsmigrate.rules.typed import before

_STEPS_SINCE = "0.10.1"


@rule(
    "DS780",
    "plateau-without-metric",
    summary="ReduceLROnPlateau in the config, where the engine gives it a constant instead of a metric.",
    why="The engine calls `step()` without a metric, catches the `TypeError`, and calls it again with the batch "
    "size. The schedule takes this number for the metric, never sees it improve, and lowers the rate again and "
    "again, whatever the loss does. Before 0.10.1 the second call fails as well. Step it in the script "
    "instead, after each evaluation.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._take_model_step",),
    keys=("scheduler.type",),
    examples=(
        Example('{"train_batch_size": 8, "scheduler": {"type": «"ReduceLROnPlateau"», "params": {"patience": 1000}}}'),
        Example('{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 1000}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the schedule can be built at all."""
    facts = schedule(context)
    if facts is not None and facts.name == "ReduceLROnPlateau" and wraps_optimizer(context) is None:
        stops = before(context, _STEPS_SINCE)
        yield context.finding(
            "scheduler.type",
            say("the engine cannot step ReduceLROnPlateau: a `TypeError` in the first step; step it in the script")
            if stops
            else say(
                "the engine gives ReduceLROnPlateau the batch size for its metric, so it lowers the rate "
                "whatever the loss does; step it in the script instead"
            ),
            severity=Severity.ERROR if stops else None,
            effect=Effect.CRASH if stops else None,
        )
