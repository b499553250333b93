"""DS750: a lower learning rate that is above the upper one."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import peak, schedule
from dsmigrate.rules.typed import given, params_path

_BOUNDS = {
    "OneCycle": ("cycle_min_lr", "cycle_max_lr"),
    "CyclicLR": ("base_lr", "max_lr"),
    "WarmupLR": ("warmup_min_lr", "warmup_max_lr"),
    "WarmupDecayLR": ("warmup_min_lr", "warmup_max_lr"),
}


@rule(
    "DS750",
    "rates-swapped",
    summary="A schedule whose lower learning rate is above its upper one.",
    why="Nothing compares the two. With the lower one above the peak the rate falls during the warm-up, or during the "
    "half of the cycle that should rise, and climbs afterwards.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR.get_lr", "deepspeed/runtime/lr_schedules.py:OneCycle"),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", '
            '"params": {"warmup_min_lr": «1e-3», "warmup_max_lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": «1e-4»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", '
            '"params": {"cycle_min_lr": «0.1», "cycle_max_lr": 0.01}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", '
            '"params": {"warmup_min_lr": 1e-4, "warmup_max_lr": 1e-4}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a lower bound above the upper one."""
    facts = schedule(context)
    if facts is None or facts.name not in _BOUNDS:
        return
    low_name, high_name = _BOUNDS[facts.name]
    params = given(context, "scheduler")
    low = params.get(low_name, 0)
    high = peak(context) if high_name == "warmup_max_lr" else params.get(high_name)
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)) or low <= high:
        return
    source = "" if high_name in params else say(", the learning rate it warms up to")
    yield context.finding(
        params_path("scheduler", low_name),
        say(
            "`{low_name}` {low} is above `{high_name}` {high}{source}: the rate falls where it should rise",
            low_name=low_name,
            low=json_text(low),
            high_name=high_name,
            high=json_text(high),
            source=source,
        ),
    )
