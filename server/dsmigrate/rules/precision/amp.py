"""DS385: Apex amp beside what it cannot work with."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import given, mode
from dsmigrate.rules.registry import rule

_KEY = "amp.enabled"


@rule(
    "DS385",
    "amp-with-others",
    summary="`amp` together with ZeRO, or with `fp16` or `bf16`.",
    why="While DeepSpeed still had Apex amp (up to 0.19.7), the engine asserted that neither ZeRO nor another "
    "16-bit mode was on beside it. Later releases reject the section as a whole.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:_do_optimizer_sanity_check",),
    until="0.19.8",
    keys=("amp", _KEY),
    examples=(
        Example(
            '{"train_batch_size": 1, "amp": {"enabled": «true»}, "zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "amp": {"enabled": false}, "zero_optimization": {"stage": 1}}\n',
            version="0.18.0",
            accepted=None,  # an older release
        ),
        Example(
            '{"train_batch_size": 1, "amp": {"enabled": true}}\n',
            version="0.18.0",
            accepted=None,  # an older release, and it needs Apex
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when amp is on and something excludes it."""
    if given(context, _KEY) is None or not context.is_on(_KEY):
        return
    weights = mode(context)
    other = (
        say("ZeRO {stage}", stage=context.stage) if context.stage else weights if weights in {"fp16", "bf16"} else None
    )
    if other is not None:
        yield context.finding(
            _KEY,
            say("DeepSpeed refuses amp together with {other}; `fp16` does what amp's O2 did", other=other),
            fixes=[context.replace(_KEY, False, say("Switch amp off"), safe=False)],  # noqa: FBT003 - the value of the key
        )
