"""Tokens and layers that training leaves out on purpose: random layer-token drop, progressive layer drop."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_LTD = "data_efficiency.data_routing.random_ltd"
_TOKENS = Feature(
    section=_LTD,
    switch=f"{_LTD}.enabled",
    begins=mark(
        "Converted layers skip a random part of the tokens now, fewer with every step: the loss curve is "
        "another one and the first steps take less memory and time"
    ),
    ends=mark("Layers process all tokens again; previously converted ones skipped a random part"),
    runs=mark("Layers skip other numbers of tokens"),
    brief=mark("random token dropping"),
    advice=mark("It acts only on layers that the script converts with `convert_to_random_ltd`"),
)
_LAYERS = Feature(
    section="progressive_layer_drop",
    switch="progressive_layer_drop.enabled",
    begins=mark(
        "The engine passes `pld_theta` to the model now, by which layers are skipped more often with every step"
    ),
    ends=mark("The engine no longer passes `pld_theta` to the model: every layer runs in every step"),
    runs=mark("Layers are skipped with other probabilities"),
    brief=mark("progressive layer drop"),
)


@explanation(
    "DF206",
    "dropped-work",
    summary="Tokens or layers that training skips at random, by a schedule of the config.",
    why=(
        "Random layer-token drop makes converted layers skip tokens, up to a length that grows with the steps."
        " Progressive layer drop, gone since 0.19.8, told the model how likely a layer is kept. Both make another"
        " computation of every step."
    ),
    source=(
        "deepspeed/runtime/data_pipeline/data_routing/scheduler.py:RandomLTDScheduler",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.random_ltd_enabled",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"data_routing": {"random_ltd": {"enabled": true,'
            ' "random_ltd_layer_num": 2}}}}',
            '{"train_batch_size": 8}',
            "Layers process all tokens again; previously converted ones skipped a random part",
            paths=(f"{_LTD}.enabled", f"{_LTD}.random_ltd_layer_num"),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "progressive_layer_drop": {"enabled": true, "theta": 0.5, "gamma": 0.001}}',
            '{"train_batch_size": 8, "progressive_layer_drop": {"enabled": true, "theta": 0.8, "gamma": 0.001}}',
            "Layers are skipped with other probabilities: `theta` 0.5 → 0.8",
            effects=(Effect.NUMERICS, Effect.SPEED),
            old_version="0.19.6",
            new_version="0.19.6",
        ),
        Example(
            '{"train_batch_size": 8, "progressive_layer_drop": {"enabled": true, "theta": 0.5, "gamma": 0.001}}',
            '{"train_batch_size": 8, "progressive_layer_drop": {"enabled": false, "theta": 0.5, "gamma": 0.001}}',
            "",
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"data_routing": {"enabled": true}}}',
            '{"train_batch_size": 8, "data_efficiency": {"data_routing": {"enabled": false}}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is skipped now."""
    yield from told(pair, _TOKENS, effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED))
    yield from told(pair, _LAYERS, effects=(Effect.NUMERICS, Effect.SPEED))
