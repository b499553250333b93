"""The order and padding of the flat buffers of stage 1 and 2, which checkpoints depend on."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_TWO = '{"train_batch_size": 8, "zero_optimization": {"stage": 2'


@explanation(
    "DF417",
    "gradient-owners",
    summary="Parameters are dealt out to the GPUs in turn, or cut into consecutive pieces; checkpoints depend on it.",
    why=(
        "`round_robin_gradients` reorders the flat buffer that stage 1 and 2 divide among the GPUs, so that"
        " neighbouring layers have different owners. Checkpoints hold the pieces as they are and nobody compares the"
        " order: master weights and moments of one setting are copied over those of other weights under the other."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:_round_robin_reorder",
        "deepspeed/runtime/zero/stage_1_and_2.py:_load_legacy_checkpoint",
    ),
    examples=(
        Example(
            _TWO + "}}",
            _TWO + ', "round_robin_gradients": true}}',
            "Gradients of neighbouring layers have different owners; master weights and optimizer states of a"
            " checkpoint that was saved without it load without an error, into the wrong weights",
            paths=("zero_optimization.round_robin_gradients",),
            effects=(Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.BREAKING,
        ),
        Example(
            _TWO + ', "round_robin_gradients": true}}',
            _TWO + "}}",
            "Gradients of neighbouring layers have the same owner; master weights and optimizer states of a checkpoint"
            " that was saved with it load without an error, into the wrong weights",
        ),
        Example(
            '{"train_batch_size": 8}',
            _TWO + ', "round_robin_gradients": true}}',
            "Gradients of neighbouring layers have different owners",
            severity=Severity.INFO,
        ),
        Example(_TWO + "}}", _TWO + ', "round_robin_gradients": false}}', ""),
    ),
)
def explain_owners(pair: Pair) -> Iterator[Explained]:
    """Yield who owns what, and what old checkpoints do."""
    for move, on in switched(pair, "round_robin_gradients"):
        owners = say(
            "Gradients of neighbouring layers have {word}",
            word=say("different owners") if on else say("the same owner"),
        )
        if move.begins:
            yield told(pair, move, owners)
            continue
        yield told(
            pair,
            move,
            say(
                "{owners}; master weights and optimizer states of a checkpoint that was saved {word} it load "
                "without an error, into the wrong weights",
                owners=owners,
                word=say("without") if on else say("with"),
            ),
            severity=Severity.BREAKING,
            advice=say("Finish a run with the setting that it was started with, or resume from the weights alone"),
            brief=say("checkpoints load into the wrong weights"),
        )


@explanation(
    "DF418",
    "parameter-alignment",
    summary="Parameters begin at 16-byte boundaries in the flat buffers of stage 1 and 2, or do not.",
    why=(
        "Padding between parameters lets kernels read weights in place that need aligned inputs. It is part of the"
        " layout of checkpoints, and DeepSpeed compares it on loading."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",
        "deepspeed/runtime/zero/stage_1_and_2.py:_load_legacy_checkpoint",
    ),
    examples=(
        Example(
            _TWO + "}}",
            _TWO + ', "parameter_alignment": true}}',
            "Parameters are padded to 16 bytes; optimizer states of checkpoints from before end in a RuntimeError if"
            " that pads any of them",
            paths=("zero_optimization.parameter_alignment",),
            effects=(Effect.MEMORY, Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.WARNING,
        ),
        Example(_TWO + "}}", _TWO + ', "parameter_alignment": false}}', ""),
    ),
)
def explain_alignment(pair: Pair) -> Iterator[Explained]:
    """Yield whether there is padding, and what old checkpoints do."""
    for move, on in switched(pair, "parameter_alignment"):
        what = (
            say("Parameters are padded to 16 bytes")
            if on
            else say("Parameters lie back to back, without padding to 16 bytes")
        )
        if move.begins:
            yield told(pair, move, what)
            continue
        end = say("if that pads any of them") if on else say("if any of them was padded")
        yield told(
            pair,
            move,
            say("{what}; optimizer states of checkpoints from before end in a RuntimeError {end}", what=what, end=end),
            severity=Severity.WARNING,
            brief=say("another layout of checkpoints"),
        )
