"""Elastic batches: sizes that DeepSpeed computed from the number of GPUs, up to 0.19.7."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_ELASTIC = Feature(
    section="elasticity",
    switch="elasticity.enabled",
    begins=mark(
        "DeepSpeed computes batch, micro-batch and accumulation from the number of GPUs now, instead of the batch keys"
    ),
    ends=mark(
        "The batch keys count again; previously DeepSpeed computed batch, micro-batch and accumulation from "
        "the number of GPUs"
    ),
    runs=mark("DeepSpeed computes the batch from other limits"),
    brief=mark("elastic batch"),
)


@explanation(
    "DF807",
    "elasticity",
    summary="Elastic training decides the batch sizes, or ceases to, or decides by other limits.",
    why=(
        "While elasticity is on, the batch is the one that most GPU counts can divide, below a cap; the ordinary batch"
        " keys are overwritten. 0.19.8 rejects the section."
    ),
    source=("deepspeed/elasticity/elasticity.py:compute_elastic_config",),
    examples=(
        Example(
            '{"train_batch_size": 8, "elasticity": {"enabled": true, "max_train_batch_size": 4000, "micro_batch_sizes":'
            ' [2, 4], "ignore_non_elastic_batch_info": true}}',
            '{"train_batch_size": 8}',
            "The batch keys count again",
            paths=("elasticity.enabled", "elasticity.max_train_batch_size"),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
            old_version="0.19.6",
            new_version="0.19.6",
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4]}}',
            '{"elasticity": {"enabled": true, "max_train_batch_size": 1000, "micro_batch_sizes": [2, 4]}}',
            "DeepSpeed computes the batch from other limits: `max_train_batch_size` 2000 → 1000",
            old_version="0.19.6",
            new_version="0.19.6",
        ),
        Example(
            '{"train_batch_size": 8, "elasticity": {"enabled": false}}',
            '{"train_batch_size": 8}',
            "",
            old_version="0.19.6",
            new_version="0.19.6",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield who decides the batch now."""
    yield from told(pair, _ELASTIC, effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED))
