"""DS479: AutoEP at stage 3 with ZeRO++ or sequence parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_on

_ENABLED = "expert_parallel.enabled"
_GRADIENTS = f"{ZERO}.zero_quantized_gradients"
_SECONDARY = f"{ZERO}.zero_hpz_partition_size"
_SEQUENCE = "sequence_parallel_size"


@rule(
    "DS479",
    "expert-parallel-stage-3",
    summary="AutoEP at ZeRO stage 3 with quantized gradients, secondary shards or sequence parallelism.",
    why="With AutoEP layers in the model, stage 3 asserts that none of them is in use. A model without such layers "
    "passes.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:_validate_zero3_moe_compatibility",),
    since="0.19.2",
    keys=(_ENABLED, _GRADIENTS, _SECONDARY),
    examples=(
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true}, "zero_optimization": '
            '{"stage": 3, "zero_quantized_gradients": «true», "zero_hpz_partition_size": «8»}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true}, "zero_optimization": '
            '{"stage": 3, "zero_hpz_partition_size": 1}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each feature that stage 3 excludes."""
    if context.stage != 3 or switched_on(context, _ENABLED) is None:
        return
    related = [(_ENABLED, say("AutoEP is on"))]
    if switched_on(context, _GRADIENTS) is not None:
        yield context.finding(_GRADIENTS, say("AutoEP at stage 3 refuses quantized gradients"), related=related)
    for path, name in ((_SECONDARY, say("secondary shards")), (_SEQUENCE, say("sequence parallelism"))):
        size = context.number(path)
        if size is not None and size > 1 and context.has(path):
            yield context.finding(path, say("AutoEP at stage 3 refuses {name}", name=name), related=related)
