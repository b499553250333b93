"""Small switches of the 16-bit modes: inputs that are cast, and the moment of a gradient sum."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import uses_bf16_optimizer

_CAST = "fp16.auto_cast"
_AT_ONCE = "bf16.immediate_grad_update"


@explanation(
    "DF312",
    "input-cast",
    summary="Floating-point inputs of the model begin or cease to be cast to fp16.",
    why=(
        "A hook calls `.half()` on floating-point tensors among the positional arguments of `engine(...)`; keyword"
        " arguments are left alone, and so are operations inside the model. It acts while fp16 is off as well."
    ),
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._cast_inputs_half",),
    examples=(
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true}}',
            '{"train_batch_size": 8, "fp16": {"enabled": true, "auto_cast": true}}',
            "Floating-point inputs that `engine(...)` gets by position are cast to fp16 now",
            paths=(_CAST,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true}}',
            '{"train_batch_size": 8, "fp16": {"enabled": true, "auto_cast": false}}',
            "",
        ),
    ),
)
def explain_cast(pair: Pair) -> Iterator[Explained]:
    """Yield whether inputs are cast now."""
    before, after = pair.old.is_on(_CAST), pair.new.is_on(_CAST)
    if pair.change(_CAST) is None or before is after or None in (before, after):
        return
    yield pair.says(
        _CAST,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say("Floating-point inputs that `engine(...)` gets by position are cast to fp16 now")
        if after
        else say(
            "Floating-point inputs that `engine(...)` gets by position are no longer cast to fp16: the script has to"
        ),
        brief=say("inputs cast to fp16") if after else say("inputs no longer cast"),
    )


@explanation(
    "DF313",
    "immediate-sums",
    summary="bf16 gradients are added to their fp32 sum at once, or after the backward pass.",
    why=(
        "`BF16_Optimizer`, and it alone, can free each bf16 gradient as soon as it is in the fp32 sum. The sums are the"
        " same; the peak of memory is lower by the bf16 gradients."
    ),
    source=("deepspeed/runtime/bf16_optimizer.py:BF16_Optimizer",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}, "data_types":'
            ' {"grad_accum_dtype": "fp32"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true,'
            ' "immediate_grad_update": true}, "data_types": {"grad_accum_dtype": "fp32"}}',
            "Each bf16 gradient joins its fp32 sum as soon as it exists: less memory at the peak, the same sums",
            paths=(_AT_ONCE,),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true,'
            ' "immediate_grad_update": true}}',
            "Does nothing: only `BF16_Optimizer` reads it, which needs fp32 gradient sums",
            effects=(Effect.NONE,),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true,'
            ' "immediate_grad_update": true}}',
            "",
        ),
    ),
)
def explain_at_once(pair: Pair) -> Iterator[Explained]:
    """Yield when gradients are added now."""
    after = pair.new.is_on(_AT_ONCE)
    if pair.change(_AT_ONCE) is None or pair.new.context.stage != 1 or pair.old.context.stage != 1:
        return
    if not any(uses_bf16_optimizer(side.context) for side in (pair.old, pair.new)):
        yield pair.says(
            _AT_ONCE,
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            message=say("Does nothing: only `BF16_Optimizer` reads it, which needs fp32 gradient sums"),
        )
        return
    yield pair.says(
        _AT_ONCE,
        effects=(Effect.MEMORY, Effect.SPEED),
        severity=Severity.INFO,
        message=say(
            "Each bf16 gradient joins its fp32 sum as soon as it exists: less memory at the peak, the same sums"
        )
        if after
        else say(
            "Each bf16 gradient joins its fp32 sum after the backward pass: more memory at the peak, the same sums"
        ),
        brief=say("gradients summed at once") if after else say("gradients summed after the backward pass"),
    )
