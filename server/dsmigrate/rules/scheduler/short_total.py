"""DS745: a schedule that ends before its warm-up does."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule, steps
from dsmigrate.rules.typed import before, given, params_path

_CLAMPED_SINCE = "0.19.3"


@rule(
    "DS745",
    "total-below-warmup",
    summary="`total_num_steps` below `warmup_num_steps`: the schedule ends before its warm-up does.",
    why="DeepSpeed only warns. WarmupDecayLR and WarmupCosineLR climb to the peak all the same and drop to the "
    "floor in the step after it. Left out, `warmup_num_steps` is 1000. Both count optimizer steps, and "
    "`total_num_steps` includes the warm-up. Before 0.19.3 WarmupCosineLR swings instead, and divides by zero "
    "when the two are equal.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=(
        "deepspeed/runtime/lr_schedules.py:WarmupDecayLR.__init__",
        "deepspeed/runtime/lr_schedules.py:WarmupCosineLR.get_lr_ratio",
    ),
    keys=("scheduler.params",),
    pains=(20,),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", '
            '"params": {"total_num_steps": «50», "warmup_num_steps": 100}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": «500»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", '
            '"params": {"total_num_steps": «100», "warmup_num_steps": 100}}}',
            version="0.19.2",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", '
            '"params": {"total_num_steps": 100, "warmup_num_steps": 100}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a total that leaves nothing after the warm-up."""
    facts = schedule(context)
    total = steps(context, "total_num_steps")
    warmup = steps(context, "warmup_num_steps")
    if facts is None or total is None or warmup is None or warmup < 1:
        return
    warmup = max(2, warmup)
    swings = facts.name == "WarmupCosineLR" and before(context, _CLAMPED_SINCE)
    if total > warmup or (total == warmup and not swings):
        return
    written = "warmup_num_steps" in given(context, "scheduler")
    named = (
        say("`warmup_num_steps`, {count}", count=json_text(warmup))
        if written
        else say("`warmup_num_steps`, {count} by default", count=json_text(warmup))
    )
    if total == warmup:
        message, severity, effect = (
            say("is as long as {named}: the schedule divides by zero", named=named),
            Severity.ERROR,
            Effect.CRASH,
        )
    else:
        message = say(
            "{total} is less than {named}: the rate climbs to its peak and drops to the floor at once",
            total=json_text(total),
            named=named,
        )
        severity, effect = None, None
    path = params_path("scheduler", "total_num_steps")
    yield context.finding(path, f"`total_num_steps` {message}", severity=severity, effect=effect)
