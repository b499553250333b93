"""DS778: a schedule that no config can describe."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import cannot_be_written, schedule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS778",
    "scheduler-needs-code",
    summary="A schedule that needs a Python function or other schedules, which no config can hold.",
    why="LambdaLR and MultiplicativeLR need a callable, SequentialLR and ChainedScheduler need schedule objects, and "
    "`scale_fn` of CyclicLR is a callable too. No JSON value is one and the engine builds none of them, so every "
    "spelling ends in a `TypeError`. Passed as a function, `lr_scheduler` of `deepspeed.initialize` can build them.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",),
    keys=("scheduler.type",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": «"LambdaLR"», "params": {"lr_lambda": "lambda step: 1"}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "CyclicLR", '
            '"params": {"base_lr": 0.1, "max_lr": 0.2, «"scale_fn": "x"»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "CyclicLR", "params": {"base_lr": 0.1, '
            '"max_lr": 0.2}}}',
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "ExponentialLR", "params": {"gamma": 0.999}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for such a schedule, and for a function that is written as a value."""
    facts = schedule(context)
    if facts is None:
        return
    if cannot_be_written(facts):
        yield context.finding(
            "scheduler.type",
            say(
                "{facts_name} needs Python objects that no config can hold: the engine cannot build it; pass a "
                "function as `lr_scheduler` to `deepspeed.initialize`",
                facts_name=facts.name,
            ),
        )
    elif "scale_fn" in facts.parameters and given(context, "scheduler").get("scale_fn") is not None:
        path = params_path("scheduler", "scale_fn")
        yield context.finding(
            path,
            say("`scale_fn` is a Python function, which no config can hold: the engine cannot build the schedule"),
            part="member",
            fixes=[context.remove(path, say("Remove `scale_fn`"), safe=False)],
        )
