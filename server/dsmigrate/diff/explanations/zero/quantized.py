"""ZeRO++: weights and gradients that travel, or lie, in few bits."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import precision
from dsmigrate.languages import say

_BF16 = '"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3'


@explanation(
    "DF420",
    "quantized-communication",
    summary="Weights are gathered in int8, gradients reduced in 4 bits, or frozen weights kept in int8, or not.",
    why=(
        "ZeRO++ quantizes in groups of a few thousand elements before it sends and converts back afterwards. Forward"
        " and backward then compute with rounded weights, and gradients are rounded twice, inside a node and between"
        " nodes. Gradients are quantized on several nodes alone, for tensors with two dimensions or more whose size"
        " divides."
    ),
    source=(
        "deepspeed/runtime/zero/partition_parameters.py:CUDAQuantizer",
        "deepspeed/runtime/comm/coalesced_collectives.py:all_to_all_quant_reduce",
    ),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "zero_quantized_weights": true}}}}',
            "Weights are gathered in int8 instead of bf16, half the bytes, and forward and backward compute with what"
            " is left of them",
            paths=("zero_optimization.zero_quantized_weights",),
            severity=Severity.WARNING,
        ),
        Example(
            f'{{{_BF16}, "zero_quantized_weights": true}}}}',
            f"{{{_BF16}}}}}",
            "Weights are gathered in bf16 instead of int8, twice the bytes, without rounding",
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "zero_quantized_gradients": true}}}}',
            "On several nodes gradients are sent in 4 bits instead of a reduce-scatter, and are rounded twice; on one"
            " node nothing changes",
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "zero_quantized_weights": false}}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is quantized now, and what no longer."""
    weights = precision(pair.new.context).weights
    for move, on in switched(pair, "zero_quantized_weights"):
        whole, share = (
            weights or say("16 bit"),
            {"fp32": (say("a quarter of"), say("four times"))}.get(weights or "", (say("half"), say("twice"))),
        )
        message = (
            say(
                "Weights are gathered in int8 instead of {whole}, {share} the bytes, and forward and backward "
                "compute with what is left of them",
                whole=whole,
                share=share[0],
            )
            if on
            else say(
                "Weights are gathered in {whole} instead of int8, {share} the bytes, without rounding",
                whole=whole,
                share=share[1],
            )
        )
        brief = say("weights gathered in {what}", what="int8" if on else whole)
        yield told(pair, move, message, severity=Severity.WARNING, brief=brief, effects=_ALL)
    for move, on in switched(pair, "zero_quantized_gradients"):
        message = (
            say(
                "On several nodes gradients are sent in 4 bits instead of a reduce-scatter, and are rounded "
                "twice; on one node nothing changes"
            )
            if on
            else say("Gradients are reduce-scattered in their own format on several nodes too, instead of 4 bits")
        )
        brief = say("gradients {word} between nodes", word=say("in 4 bits") if on else say("no longer in 4 bits"))
        yield told(pair, move, message, severity=Severity.WARNING, brief=brief, effects=_ALL)
    for move, on in switched(pair, "zero_quantized_nontrainable_weights"):
        message = (
            say(
                "Shards of frozen weights are kept and gathered in int8, half the memory and bytes of 16 bit, "
                "and rounded"
            )
            if on
            else say("Shards of frozen weights are kept and gathered in their own format, no longer in int8")
        )
        effects = (Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION)
        brief = say("frozen weights {word}", word=say("in int8") if on else say("no longer in int8"))
        yield told(pair, move, message, severity=Severity.WARNING, brief=brief, effects=effects)


_ALL = (Effect.NUMERICS, Effect.COMMUNICATION, Effect.SPEED)
