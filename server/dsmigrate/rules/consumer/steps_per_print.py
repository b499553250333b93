"""DS812: `steps_per_print` under Transformers and Accelerate, which overwrite it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule


@rule(
    "DS812",
    "steps-per-print-overwritten",
    summary="Transformers and Accelerate overwrite `steps_per_print` with infinity: DeepSpeed prints nothing.",
    why='Accelerate\'s plugin sets `steps_per_print` to `inf` ("this will stop deepspeed from logging @ stdout"), '
    "and the Trainer uses the same plugin. Progress lines, the samples per second of `timers.throughput` and "
    "the timings of `wall_clock_breakdown` that are bound to this interval do not appear.",
    severity=Severity.HINT,
    effect=Effect.OVERRIDDEN,
    source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("steps_per_print",),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  «"steps_per_print": 2000»
}
""",
            fixed="""{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2}
}
""",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {}}', consumer=Consumer.ACCELERATE),
        Example('{"train_batch_size": 8, "steps_per_print": 2000}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the file names an interval."""
    value = context.raw("steps_per_print")
    if value is MISSING or value in (AUTO, float("inf")):
        return
    entry = context.entry("steps_per_print")
    assert entry is not None  # noqa: S101 - it has a value
    yield context.finding(
        entry,
        say(
            "{consumer} overwrites `steps_per_print` with infinity, so {value} is never used",
            consumer=context.consumer.title,
            value=json_text(value),
        ),
        part="member",
        tags=[Tag.UNNECESSARY],
        fixes=[context.remove(entry, say("Remove `steps_per_print`"), safe=True)],
    )
