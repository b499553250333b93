"""Whether full weights are written at stage 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'
_KEY = "stage3_gather_16bit_weights_on_model_save"


@explanation(
    "DF416",
    "whole-weights-on-save",
    summary="`save_16bit_model` writes full weights at stage 3, or nothing.",
    why=(
        "At stage 3 a state dict holds empty tensors. With the switch on, `save_16bit_model` gathers the weights into"
        " host memory of rank 0 and writes them; without it, it logs the reason and returns False. The save functions"
        " of Transformers and Accelerate look at the key too. `save_checkpoint` does not."
    ),
    source=(
        "deepspeed/runtime/engine.py:save_16bit_model",
        "deepspeed/runtime/engine.py:_zero3_consolidated_16bit_state_dict",
    ),
    examples=(
        Example(
            _THREE + f', "{_KEY}": true}}}}',
            _THREE + "}}",
            "`save_16bit_model`, and what Transformers and Accelerate save, no longer holds full weights",
            paths=(f"zero_optimization.{_KEY}",),
            effects=(Effect.CHECKPOINT,),
            severity=Severity.WARNING,
        ),
        Example(
            _THREE + "}}",
            _THREE + f', "{_KEY}": true}}}}',
            "`save_16bit_model` gathers full weights in host memory of rank 0 and writes them",
            severity=Severity.INFO,
        ),
        Example(_THREE + "}}", _THREE + f', "{_KEY}": false}}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is saved now."""
    for move, on in switched(pair, _KEY):
        if on:
            message = say("`save_16bit_model` gathers full weights in host memory of rank 0 and writes them")
            yield told(pair, move, message, brief=say("full weights on save"))
        else:
            message = say("`save_16bit_model`, and what Transformers and Accelerate save, no longer holds full weights")
            advice = say("`zero_to_fp32.py` makes full weights of a checkpoint")
            yield told(
                pair, move, message, severity=Severity.WARNING, advice=advice, brief=say("no full weights on save")
            )
