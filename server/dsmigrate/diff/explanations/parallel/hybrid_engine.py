"""The engine that trains and generates."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_HYBRID = Feature(
    section="hybrid_engine",
    switch="hybrid_engine.enabled",
    begins=mark(
        "`initialize` returns a hybrid engine now: in evaluation mode known layers generate with "
        "inference kernels, which need a key-value cache of their own"
    ),
    ends=mark("`initialize` returns the ordinary engine again: generation runs through the layers that train"),
    runs=mark("Generation in the hybrid engine works otherwise"),
    brief=mark("hybrid engine"),
)


@explanation(
    "DF806",
    "hybrid-engine",
    summary="The hybrid engine goes on or off, or generates with other settings.",
    why=(
        "For reinforcement learning one engine trains and generates. Training steps stay as they are; generation runs"
        " in other kernels, with its own memory and its own communication."
    ),
    source=("deepspeed/runtime/hybrid_engine.py:DeepSpeedHybridEngine",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": true, "max_out_tokens": 1024}}',
            "`initialize` returns a hybrid engine now",
            paths=("hybrid_engine.enabled", "hybrid_engine.max_out_tokens"),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": true, "max_out_tokens": 512}}',
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": true, "max_out_tokens": 1024}}',
            "Generation in the hybrid engine works otherwise: `max_out_tokens` 512 → 1024",
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": false, "max_out_tokens": 512}}',
            '{"train_batch_size": 8, "hybrid_engine": {"enabled": false, "max_out_tokens": 1024}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what the engine does beside training now."""
    yield from told(pair, _HYBRID, effects=(Effect.MEMORY, Effect.SPEED))
