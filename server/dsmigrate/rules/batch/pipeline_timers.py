"""DS266: a pipeline with timers and no report interval."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import has_section
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_STEPS = "steps_per_print"
_SWITCHES = ("wall_clock_breakdown", "flops_profiler.enabled")


@rule(
    "DS266",
    "pipeline-timers",
    summary="A pipeline with `wall_clock_breakdown` or the flops profiler needs `steps_per_print`.",
    why="The pipeline engine prints its timers when the step number modulo `steps_per_print` is 0, and does not "
    "look whether that key is set. Left out (the default since 0.15.2 is `null`) the first optimizer step raises a "
    "`TypeError`. It concerns models that are a `PipelineModule`, which the section `pipeline` speaks for.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/pipe/engine.py:PipelineEngine",),
    since="0.15.2",
    consumers=(Consumer.DEEPSPEED,),
    keys=("wall_clock_breakdown", "pipeline"),
    examples=(
        Example(
            '{"train_batch_size": 1, "wall_clock_breakdown": «true», '
            '"pipeline": {"activation_checkpoint_interval": 1}}\n',
            fixed='{"train_batch_size": 1, "wall_clock_breakdown": true, '
            '"pipeline": {"activation_checkpoint_interval": 1}, "steps_per_print": 10}\n',
        ),
        Example('{"train_batch_size": 1, "wall_clock_breakdown": true}\n'),
        Example(
            '{"train_batch_size": 1, "wall_clock_breakdown": true, "steps_per_print": 10, '
            '"pipeline": {"activation_checkpoint_interval": 1}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the switch that starts the timers."""
    if not has_section(context, "pipeline") or context.value(_STEPS) not in (None, MISSING):
        return
    switch = next((path for path in _SWITCHES if context.is_on(path)), None)
    if switch is not None:
        yield context.finding(
            switch,
            say(
                "a pipeline engine prints these timers every `{steps}` steps: unset, its first step is a TypeError",
                steps=_STEPS,
            ),
            fixes=[context.insert((_STEPS,), 10, say("Add `{steps}` 10", steps=_STEPS), safe=False)],
        )
