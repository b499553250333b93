"""Keys of stage 1 that `BF16_Optimizer`, which stands in for it, does not read."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import stands_in
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import uses_bf16_optimizer

_BF16 = (
    '{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},'
    ' "zero_optimization": {"stage": 1'
)


@explanation(
    "DF409",
    "unread-by-bf16-optimizer",
    summary="A key of stage 1 changes where `BF16_Optimizer` stands in for it, and does nothing.",
    why=(
        "With bf16 weights, fp32 sums of gradients and no optimizer on the CPU, the engine builds `BF16_Optimizer` for"
        " stage 1. That has no buckets, reduces at the end of a step in pieces of a fixed size, and is not told of"
        " the keys that rule these at stage 1."
    ),
    source=(
        "deepspeed/runtime/engine.py:_do_optimizer_sanity_check",
        "deepspeed/runtime/engine.py:_configure_bf16_optimizer",
    ),
    examples=(
        Example(
            _BF16 + "}}",
            _BF16 + ', "reduce_bucket_size": 1e8}}',
            "Does nothing: `BF16_Optimizer` stands in for stage 1, with bf16 weights and fp32 sums, and does not read"
            " it",
            paths=("zero_optimization.reduce_bucket_size",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "reduce_bucket_size": 1e8}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the keys that are not read on the new side; what the old side did with them ends with its stage."""
    for path in pair.changes:
        if pair.change(path) is None or not stands_in(pair, path):
            continue
        both = uses_bf16_optimizer(pair.old.context)
        message = say("`BF16_Optimizer` stands in for stage 1, with bf16 weights and fp32 sums, and does not read it")
        begin = say("Does nothing") if both else say("It no longer does anything")
        yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=f"{begin}: {message}")
