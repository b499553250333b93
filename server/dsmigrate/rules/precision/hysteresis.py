"""DS312: an overflow count at which the loss scale never falls."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import given, scales
from dsmigrate.rules.registry import rule

_KEY = "fp16.hysteresis"


@rule(
    "DS312",
    "hysteresis-not-positive",
    summary="`fp16.hysteresis` of 0 or less keeps the dynamic loss scale from ever falling.",
    why="The scale halves on the overflow at which the count has come down to 1. A count that starts at 0 or below "
    "never is 1: an overflow that repeats skips every further step, without an error.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "hysteresis": «0»}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true, "hysteresis": 1}, '
            '"zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "hysteresis": 1}, "zero_optimization": {"stage": 1}}\n'
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false, "hysteresis": 0}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a count that is not positive, where it is used."""
    value = context.number(_KEY)
    if given(context, _KEY) is None or value is None or value > 0 or not scales(context) or not context.stage:
        return
    yield context.finding(
        _KEY,
        say(
            "with {value} the loss scale never falls, and a lasting overflow skips every step; 1 halves at "
            "each overflow",
            value=value,
        ),
        fixes=[context.replace(_KEY, 1, say("Replace it by 1"), safe=False)],
    )
