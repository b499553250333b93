"""How stages 1 to 3 write and read their checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_TWO = '{"train_batch_size": 8, "zero_optimization": {"stage": 2'
_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'


@explanation(
    "DF424",
    "resuming",
    summary="Optimizer states are saved in another form, or read from a checkpoint in another way.",
    why=(
        "An elastic checkpoint holds states without padding, and each rank reads the files of all ranks to merge them."
        " It takes the step count from the parameter group, where FusedAdam and FusedLion keep it and others do not:"
        " what those have saved does not load, with the switch (AssertionError) or without it (KeyError). Resuming"
        " from fp32 weights continues where training stopped; from 16-bit ones the low bits are lost."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:_restore_step_from_elastic_checkpoint",
        "deepspeed/runtime/zero/stage_1_and_2.py:_load_legacy_checkpoint",
        "deepspeed/runtime/engine.py:_load_zero_checkpoint",
    ),
    examples=(
        Example(
            _TWO + "}}",
            _TWO + ', "elastic_checkpoint": true}}',
            "Optimizer states are saved without padding and each rank reads the files of all ranks; such checkpoints"
            " load with FusedAdam and FusedLion alone",
            paths=("zero_optimization.elastic_checkpoint",),
            effects=(Effect.CHECKPOINT,),
            severity=Severity.WARNING,
        ),
        Example(
            _TWO + ', "elastic_checkpoint": true}}',
            _TWO + "}}",
            "Checkpoints that were saved with `elastic_checkpoint` load if FusedAdam or FusedLion saved them; others"
            " end in a KeyError",
            severity=Severity.WARNING,
        ),
        Example(
            _TWO + "}}",
            _TWO + ', "load_from_fp32_weights": false}}',
            "Resuming casts the 16-bit weights up and no longer takes the saved fp32 master weights",
            severity=Severity.WARNING,
        ),
        Example(
            _THREE + "}}",
            _THREE + ', "pipeline_loading_checkpoint": true}}',
            "The ranks of a node read their checkpoint files one after the other: host memory for one at a time",
            severity=Severity.INFO,
        ),
        Example(_TWO + "}}", _TWO + ', "elastic_checkpoint": false}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is written or read otherwise."""
    for move, on in switched(pair, "elastic_checkpoint"):
        if on:
            message = say(
                "Optimizer states are saved without padding and each rank reads the files of all ranks; such "
                "checkpoints load with FusedAdam and FusedLion alone"
            )
            yield told(pair, move, message, severity=Severity.WARNING, brief=say("elastic checkpoints"))
        else:
            message = say(
                "Checkpoints that were saved with `elastic_checkpoint` load if FusedAdam or FusedLion saved "
                "them; others end in a KeyError"
            )
            yield told(pair, move, message, severity=Severity.WARNING, brief=say("ordinary checkpoints"))
    for move, on in switched(pair, "load_from_fp32_weights"):
        yield from _master_weights(pair, move.path, on=on)
    for move, on in switched(pair, "pipeline_loading_checkpoint"):
        if pair.new.context.stage != 3 and on:
            message = say("Loading a checkpoint ends in an AssertionError below stage 3")
            yield told(pair, move, message, effects=(Effect.CHECKPOINT,), severity=Severity.BREAKING)
            continue
        message = (
            say("The ranks of a node read their checkpoint files one after the other: host memory for one at a time")
            if on
            else say("The ranks of a node read their checkpoint files all at once: host memory for all of them")
        )
        yield told(pair, move, message)


def _master_weights(pair: Pair, path: str, *, on: bool) -> Iterator[Explained]:
    if pair.new.context.stage == 3:
        message = say(
            "Does nothing at stage 3, which restores its master weights, but for a universal checkpoint without states"
        )
        yield pair.says(path, effects=(Effect.CHECKPOINT,), severity=Severity.INFO, message=message)
        return
    message = (
        say("Resuming takes the saved fp32 master weights and no longer casts the 16-bit weights up")
        if on
        else say("Resuming casts the 16-bit weights up and no longer takes the saved fp32 master weights")
    )
    yield pair.says(path, effects=(Effect.CHECKPOINT,), severity=Severity.WARNING, message=message)
