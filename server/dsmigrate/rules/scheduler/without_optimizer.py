"""DS785: a scheduler without an optimizer section."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import written_type


@rule(
    "DS785",
    "scheduler-without-optimizer",
    summary="A scheduler without an optimizer section, which needs an optimizer from the script.",
    why="The schedule acts on an optimizer that the script passes to `deepspeed.initialize` as well as on one from the "
    "config. With neither no schedule is built, and no message says so. Transformers and Accelerate always pass one.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_lr_scheduler",),
    consumers=(Consumer.DEEPSPEED,),
    keys=("scheduler", "optimizer"),
    examples=(
        Example('{"train_batch_size": 8, «"scheduler"»: {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4}}}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a schedule that is alone."""
    if written_type(context, "scheduler") is not None and not context.has("optimizer"):
        yield context.finding(
            "scheduler",
            say(
                "the config has a scheduler and no optimizer: it acts on the optimizer that the script passes to "
                "`deepspeed.initialize`, and nothing happens without one"
            ),
            part="key",
        )
