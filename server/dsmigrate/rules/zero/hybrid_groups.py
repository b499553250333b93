"""DS487: hybrid engine groups that do not divide the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import given, switched_on

_SIZE = "hybrid_engine.inference_tp_size"


@rule(
    "DS487",
    "hybrid-engine-groups",
    summary="`hybrid_engine.inference_tp_size` that does not divide the number of ranks.",
    why="Ranks are cut into groups of this size from the first one on. Ranks left over belong to no group and fail "
    "when the "
    "model generates.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/hybrid_engine.py:DeepSpeedHybridEngine.create_inference_module",),
    keys=(_SIZE,),
    examples=(
        Example(
            '{"train_batch_size": 6, "hybrid_engine": {"enabled": true, "inference_tp_size": «4»}, '
            '"zero_optimization": {"stage": 3, "gather_16bit_weights_on_model_save": true}}\n',
            facts=Facts(world_size=6),
        ),
        Example(
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": true, "inference_tp_size": 4}, '
            '"zero_optimization": {"stage": 3}}\n',
            facts=Facts(world_size=8),
            accepted=None,  # eight processes
        ),
        Example('{"train_batch_size": 8, "hybrid_engine": {"enabled": true, "inference_tp_size": 4}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at a size that leaves ranks over."""
    size, world = context.number(_SIZE), context.facts.world_size
    if given(context, _SIZE) is None or switched_on(context, "hybrid_engine.enabled") is None:
        return
    if size is None or size <= 1 or world is None or world % size == 0:
        return
    yield context.finding(_SIZE, say("{world} ranks cannot be cut into groups of {size}", world=world, size=int(size)))
