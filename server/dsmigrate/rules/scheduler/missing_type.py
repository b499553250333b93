"""DS705: a scheduler section that names no type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import section


@rule(
    "DS705",
    "scheduler-without-type",
    summary="A scheduler section without a type, which builds no schedule.",
    why="Without `type` the section is silently skipped, `params` included, and the learning rate stays "
    "where the optimizer starts.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/config.py:get_scheduler_name",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",
    ),
    keys=("scheduler", "scheduler.type"),
    examples=(
        Example('{"train_batch_size": 8, «"scheduler"»: {"params": {"warmup_num_steps": 100}}}'),
        Example('{"train_batch_size": 8, «"scheduler"»: {"type": null, "params": {"warmup_num_steps": 100}}}'),
        Example('{"train_batch_size": 8, "scheduler": {}}'),
        Example('{"train_batch_size": 8, "scheduler": {"tpye": "WarmupLR", "params": {}}}'),  # an unknown key
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a section without type; one whose type is misspelt is told as an unknown key."""
    entry = section(context, "scheduler")
    if entry is None or context.raw("scheduler.type") not in (MISSING, None):
        return
    inner = [other for other in context.entries if other.path[:1] == ("scheduler",) and len(other.path) == 2]
    if not inner or any(
        other.key is None and "scheduler.type" in context.known.nearest(other.name, "scheduler") for other in inner
    ):
        return
    yield context.finding(
        entry,
        say(
            "the section names no `type`, so DeepSpeed builds no schedule and ignores `params`; add a type "
            'such as "WarmupLR", or remove the section'
        ),
        part="key",
    )
