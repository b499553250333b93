"""DS124: a number outside the range of its key."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import range_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS124",
    "out-of-range",
    summary="A number outside the range that the key takes.",
    why=(
        "Pydantic sections check ranges when the config is read, and name the field in a `ValidationError`. Sections"
        " that are read later, such as `expert_parallel`, check when they are used."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig",
        "deepspeed/runtime/precision_config.py:DeepSpeedFP16Config",
    ),
    keys=("zero_optimization.reduce_bucket_size", "zero_optimization.offload_optimizer.ratio", "fp16.loss_scale"),
    pains=(6,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": «0»}}', accepted=False
        ),
        Example('{"train_batch_size": 8, "fp16": {"enabled": true, "min_loss_scale": «0»}}', accepted=False),
        Example('{"train_batch_size": 8, "expert_parallel": {"autoep_size": «0»}}'),
        Example('{"train_batch_size": 8, "fp16": {"enabled": false, "min_loss_scale": 0}}'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each number that is too small or too large."""
    for entry, key, node, verdict in verdicts(context, Kind.RANGE):
        refused = verdict.effect is Effect.REJECTED
        yield context.finding(
            entry,
            say(
                "{place} has to be {range_text}; DeepSpeed {word} {value}",
                place=place(entry),
                range_text=range_text(key),
                word=say("rejects") if refused else say("reads and does not check"),
                value=shown_value(node.value()),
            ),
            severity=verdict.severity,
            effect=verdict.effect,
        )
