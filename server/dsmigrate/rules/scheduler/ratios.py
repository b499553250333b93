"""DS760: a ratio of WarmupCosineLR that is none."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import parameters


@rule(
    "DS760",
    "cosine-ratio",
    summary="A ratio of WarmupCosineLR outside of 0 to 1.",
    why="`warmup_min_ratio` and `cos_min_ratio` are shares of the optimizer's `lr`, not learning rates, and "
    "nothing checks them. Above 1 the warm-up starts above the peak, or the decay climbs; below 0 the rate "
    "becomes negative.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/lr_schedules.py:WarmupCosineLR.get_lr_ratio",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", '
            '"params": {"total_num_steps": 5000, "cos_min_ratio": «10»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", '
            '"params": {"total_num_steps": 5000, "warmup_min_ratio": «-0.1»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", '
            '"params": {"total_num_steps": 5000, "cos_min_ratio": 0.1, "warmup_min_ratio": 1}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a share of less than nothing or more than all."""
    facts = schedule(context)
    if facts is None or facts.torch:
        return
    for entry in parameters(context, "scheduler"):
        parameter = facts.parameters.get(entry.name)
        value = None if entry.node is None else entry.node.value()
        if parameter is None or not parameter.name.endswith("_ratio") or not isinstance(value, (int, float)):
            continue
        if not 0 <= value <= 1:
            yield context.finding(
                entry,
                say(
                    "{name} is a share of the optimizer's `lr`, from 0 to 1, not {value}",
                    name=shown(entry.name),
                    value=json_text(value),
                ),
            )
