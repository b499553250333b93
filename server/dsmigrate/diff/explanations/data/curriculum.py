"""Curriculum learning: samples in the order of their difficulty."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_SECTION = "data_efficiency.data_sampling.curriculum_learning"
_CURRICULUM = Feature(
    section=_SECTION,
    switch=f"{_SECTION}.enabled",
    begins=mark(
        "The loader that DeepSpeed builds draws samples by difficulty now, from easy to hard; previously "
        "they came in the shuffled order of the data set"
    ),
    ends=mark(
        "Samples come in the shuffled order of the data set again; previously the loader of DeepSpeed drew "
        "them by difficulty"
    ),
    runs=mark("The curriculum offers other samples"),
    brief=mark("curriculum learning"),
    advice=mark("It reaches only loaders that come from `training_data` or `engine.deepspeed_io`"),
)
_LEGACY = Feature(
    section="curriculum_learning",
    switch="curriculum_learning.enabled",
    begins=mark("The engine passes `curriculum_seqlen` to the model now, a sequence length that rises with the steps"),
    ends=mark(
        "The engine no longer passes `curriculum_seqlen` to the model: sequences have their full length from the start"
    ),
    runs=mark("The sequence length of the curriculum rises otherwise"),
    brief=mark("sequence-length curriculum"),
)


@explanation(
    "DF204",
    "curriculum",
    summary="Curriculum learning begins or ends, or goes through other difficulties.",
    why=(
        "A curriculum decides which samples a step sees, so that the loss of every step is another one. That of"
        " `data_efficiency` replaces the sampler of a loader that DeepSpeed builds; the old one at top level, gone"
        " since 0.19.8, told the model a sequence length. `data_efficiency.enabled` and `data_sampling.enabled` decide"
        " nothing."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.deepspeed_io",
        "deepspeed/runtime/data_pipeline/data_sampling/data_sampler.py:DeepSpeedDataSampler",
        "deepspeed/runtime/data_pipeline/curriculum_scheduler.py:CurriculumScheduler",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": true,'
            ' "curriculum_metrics": {"length": {"min_difficulty": 8}}}}}}',
            "The loader that DeepSpeed builds draws samples by difficulty now, from easy to hard",
            paths=(f"{_SECTION}.enabled", f"{_SECTION}.curriculum_metrics.length.min_difficulty"),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": true,'
            ' "curriculum_metrics": {"length": {"max_difficulty": 64}}}}}}',
            '{"train_batch_size": 8, "data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": true,'
            ' "curriculum_metrics": {"length": {"max_difficulty": 32}}}}}}',
            "The curriculum offers other samples: `max_difficulty` 64 → 32 (difficulty at which the curriculum ends",
        ),
        Example(
            '{"train_batch_size": 8, "curriculum_learning": {"enabled": true, "curriculum_type": "seqlen"}}',
            '{"train_batch_size": 8, "curriculum_learning": {"enabled": false, "curriculum_type": "seqlen"}}',
            "The engine no longer passes `curriculum_seqlen` to the model",
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            old_version="0.19.6",
            new_version="0.19.6",
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"enabled": true}}',
            '{"train_batch_size": 8, "data_efficiency": {"enabled": false}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of either curriculum."""
    yield from told(pair, _CURRICULUM, effects=(Effect.NUMERICS,))
    yield from told(pair, _LEGACY, effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED))
