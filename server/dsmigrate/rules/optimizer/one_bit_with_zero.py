"""DS607: an optimizer of the 1-bit family under ZeRO, which never worked."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule


@rule(
    "DS607",
    "one-bit-optimizer-with-zero",
    summary="A 1-bit optimizer under ZeRO, which excludes every stage.",
    why="OneBitAdam, OneBitLamb and ZeroOneAdam exchange their momentum themselves, so up to 0.19.6 the engine asserts "
    "that ZeRO is off. Later releases do not have them at all.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "https://github.com/deepspeedai/DeepSpeed/issues/5046",
    ),
    until="0.19.7",
    keys=("optimizer.type", "zero_optimization.stage"),
    pains=(37,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, '
            '"optimizer": {"type": «"OneBitAdam"», "params": {"lr": 2e-4}}}',
            version="0.19.6",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 0}, '
            '"optimizer": {"type": "OneBitAdam", "params": {"lr": 2e-4}}}',
            version="0.19.6",
            accepted=None,  # a verdict of another release
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a 1-bit optimizer at a stage above 0."""
    facts = optimizer(context)
    if facts is None or facts.until is None or not context.stage:
        return
    yield context.finding(
        "optimizer.type",
        say(
            "`{facts_name}` excludes ZeRO: the engine refuses to start at stage {stage}; use `AdamW`, or set "
            "`zero_optimization.stage` to 0",
            facts_name=facts.name,
            stage=context.stage,
        ),
    )
