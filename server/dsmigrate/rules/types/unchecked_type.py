"""DS129: a value of a wrong type that nothing checks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS129",
    "unchecked-type",
    summary="A value of a wrong type that DeepSpeed takes without a check.",
    why=(
        "A plain read keeps whatever stands there. It fails where it is used, or is never used the way it was meant: a "
        "string where a list of names belongs is taken apart into letters."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config_utils.py:get_scalar_param",),
    examples=(
        Example('{"train_batch_size": 8, "autotuning": {"metric_path": «3»}}'),
        Example(
            '{"train_batch_size": 8, "torch_autocast": {"enabled": false, "lower_precision_safe_modules":'
            ' «"torch.nn.Linear"»}}',
        ),
        Example('{"train_batch_size": 8, "autotuning": {"metric_path": null, "metric": "latency"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such value."""
    for entry, _, node, verdict in verdicts(context, Kind.OTHER):
        yield context.finding(
            entry,
            say(
                "{place} has to be {wanted}; DeepSpeed takes {value} without a check",
                place=place(entry),
                wanted=verdict.wanted,
                value=shown_value(node.value()),
            ),
            severity=verdict.severity,
            effect=verdict.effect,
        )
