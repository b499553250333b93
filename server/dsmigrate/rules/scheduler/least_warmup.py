"""DS738: a warm-up of fewer than two steps, which becomes two."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import is_checked, schedule, warms_up
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS738",
    "least-warmup",
    summary="A warm-up of fewer than two steps, which DeepSpeed takes as two.",
    why="The logarithmic warm-up divides by the logarithm of `warmup_num_steps`, so 1 is silently raised to 2; before "
    "0.19.3 so are 0 and negative numbers, which later releases refuse. The first two optimizer steps then run at "
    "`warmup_min_lr`, which is 0 by default. For no warm-up leave the scheduler out.",
    severity=Severity.INFO,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR.__init__",),
    keys=("scheduler.params",),
    pains=(19,),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «1»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «0»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2}}}',
            version="0.19.2",
            accepted=None,  # a verdict of another release
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a count below two that is not refused."""
    if not warms_up(schedule(context)):
        return
    value = given(context, "scheduler").get("warmup_num_steps")
    if not isinstance(value, (int, float)) or value >= 2 or (value != 1 and is_checked(context, "warmup_num_steps")):
        return
    path = params_path("scheduler", "warmup_num_steps")
    yield context.finding(
        path,
        say(
            "{what} {value} is taken as 2; for no warm-up leave `scheduler` out",
            what=shown("warmup_num_steps"),
            value=json_text(value),
        ),
        fixes=[context.replace(path, 2, say("Write 2, which it is"), safe=True)],
    )
