"""The pipeline engine: recomputation inside a stage, and what travels between stages."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark, say

_INTERVAL = "pipeline.activation_checkpoint_interval"
_REENTRANT = "pipeline.use_reentrant"
_SLICES = {"pipeline.pipe_partitioned": mark("Activations"), "pipeline.grad_partitioned": mark("Gradients")}
_WITHIN = (mark("activations"), mark("gradients"))
"""The same within a sentence, as ``say`` gets them from those."""


@explanation(
    "DF803",
    "pipeline",
    summary="A pipeline stage recomputes other activations, or sends whole tensors instead of slices.",
    why=(
        "The pipeline engine runs when the model is a `PipelineModule`; with any other model nobody reads the section."
        " Stages and partitioning are arguments of the module. Slices exist only beside tensor parallelism."
    ),
    source=("deepspeed/runtime/pipe/engine.py:PipelineEngine",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "pipeline": {"activation_checkpoint_interval": 2}}',
            "A pipeline stage keeps activations every 2 layers and computes the others again in the backward pass",
            paths=(_INTERVAL,),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "pipeline": {"pipe_partitioned": false}}',
            "Activations are sent whole between pipeline stages, previously as one slice for each tensor-parallel rank",
            effects=(Effect.MEMORY, Effect.COMMUNICATION),
        ),
        Example(
            '{"train_batch_size": 8, "pipeline": {"use_reentrant": null}}',
            '{"train_batch_size": 8, "pipeline": {"use_reentrant": true}}',
            "Checkpointing in a pipeline stays reentrant: only `false` changes it",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "pipeline": {"pipe_partitioned": true}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what a stage does now."""
    before, after = pair.numbers(_INTERVAL)
    if pair.change(_INTERVAL) is not None and before is not None and after is not None:
        yield pair.says(
            _INTERVAL,
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
            message=say(
                "A pipeline stage keeps activations every {after} layers and computes the others again in the "
                "backward pass",
                after=number(after),
            )
            if after > 0
            else say("A pipeline stage recomputes activations only as its `PipelineModule` says"),
            brief=say("other activations recomputed in the pipeline"),
        )
    if pair.change(_REENTRANT) is not None:
        yield _reentrant(pair)
    for path, what in _SLICES.items():
        sliced = pair.new.is_on(path)
        if pair.change(path) is not None and sliced is not None and sliced is not pair.old.is_on(path):
            whole, pieces = say("whole"), say("as one slice for each tensor-parallel rank")
            now, then = (pieces, whole) if sliced else (whole, pieces)
            effects = (Effect.MEMORY, Effect.COMMUNICATION) if what == "Activations" else (Effect.COMMUNICATION,)
            yield pair.says(
                path,
                effects=effects,
                severity=Severity.INFO,
                message=say(
                    "{what} are sent {now} between pipeline stages, previously {then}",
                    what=say(what),
                    now=now,
                    then=then,
                ),
                brief=say("{what} of the pipeline sent in slices", what=say(what.lower()))
                if sliced
                else say("{what} of the pipeline sent whole", what=say(what.lower())),
            )


def _reentrant(pair: Pair) -> Explained:
    before, after = (side.value(_REENTRANT) is not False for side in (pair.old, pair.new))
    if before is after:
        return pair.says(
            _REENTRANT,
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            message=say("Checkpointing in a pipeline stays reentrant: only `false` changes it"),
        )
    return pair.says(
        _REENTRANT,
        effects=(Effect.MEMORY, Effect.SPEED),
        severity=Severity.INFO,
        message=say(
            "Checkpointing in a pipeline is {word}reentrant: other layers may be recomputed, and inputs "
            "without a gradient are {word_2}",
            word="" if after else say("no longer "),
            word_2=say("marked as having one") if after else say("left as they are"),
        ),
        brief=say("another form of activation checkpointing"),
    )
