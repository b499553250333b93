"""DS936: an experiment that ends before it begins to measure."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_START, _END = "autotuning.start_profile_step", "autotuning.end_profile_step"


@rule(
    "DS936",
    "autotuning-steps",
    summary="`autotuning.end_profile_step` below `start_profile_step`: nothing is measured and the engine fails.",
    why="The floating-point operations are counted at `start_profile_step`. An experiment that leaves before then "
    "asks for a number that was never stored: AttributeError about `flops`.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._autotuning_exit",),
    keys=(_START, _END),
    examples=(
        Example('{"train_batch_size": 8, "autotuning": {"enabled": true, "start_profile_step": «10»}}'),
        Example(
            '{"train_batch_size": 8, "autotuning": '
            '{"enabled": true, "start_profile_step": 10, "end_profile_step": «9»}}'
        ),
        Example('{"train_batch_size": 8, "autotuning": {"enabled": true, "end_profile_step": 15}}'),
        Example('{"train_batch_size": 8, "autotuning": {"start_profile_step": 10}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the step that is written."""
    start, end = context.number(_START), context.number(_END)
    if not context.is_on("autotuning.enabled") or start is None or end is None or end >= start:
        return
    yield context.finding(
        _END if context.has(_END) else _START,
        say(
            "The experiment ends at step {end}, before step {start} at which it would count operations",
            end=end,
            start=start,
        ),
    )
