"""Batches packed by their number of tokens."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_SECTION = "data_efficiency.data_sampling.dynamic_batching"
_PACKING = Feature(
    section=_SECTION,
    switch=f"{_SECTION}.enabled",
    begins=mark(
        "The helper for batches of variable size may pack samples by tokens now, and scale the learning "
        "rate of every step with the size of its batch"
    ),
    ends=mark("The helper for batches of variable size is no longer allowed: a script that calls it stops"),
    runs=mark("Batches are packed otherwise"),
    brief=mark("dynamic batching"),
    advice=mark(
        "It does nothing unless the script calls `get_dataloader_and_lr_scheduler_for_variable_batch_size_deepspeed`"
    ),
)


@explanation(
    "DF205",
    "dynamic-batching",
    summary="Batches of variable size begin or end, or are packed by other limits.",
    why=(
        "Samples are packed until a number of tokens is reached, and the learning rate follows the number of samples in"
        " a step. The engine itself never reads the section: a helper that the script calls does."
    ),
    source=("deepspeed/runtime/data_pipeline/data_sampling/variable_batch_size_and_lr.py",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": true,'
            ' "max_tokens": 512}}}}',
            "The helper for batches of variable size may pack samples by tokens now",
            paths=(f"{_SECTION}.enabled", f"{_SECTION}.max_tokens"),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": true,'
            ' "max_tokens": 512, "lr_scaling_method": "linear"}}}}',
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": true,'
            ' "max_tokens": 512, "lr_scaling_method": "sqrt"}}}}',
            'Batches are packed otherwise: `lr_scaling_method` "linear" → "sqrt"',
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": false,'
            ' "max_tokens": 512}}}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of packed batches."""
    yield from told(pair, _PACKING, effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED))
