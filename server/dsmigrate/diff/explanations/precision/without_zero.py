"""16-bit training with and without ZeRO: two wrappers around the optimizer that do not step alike."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import built, decays
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.force import STAGE
from dsmigrate.rules.batch._shared import STEPS
from dsmigrate.rules.precision._shared import ACCUMULATION, DYNAMIC, dtype, mode
from dsmigrate.rules.typed import before

_UNSCALED_SINCE = "0.18.3"
"""Since when nobody but ZeRO multiplies the loss by the loss scale."""
_LAZY_SINCE = "0.13.2"
"""Since when the optimizers of ZeRO no longer step with zero gradients at the start."""
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, '
_SGD = '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-2}}, "zero_allow_untested_optimizer": true, '


@explanation(
    "DF314",
    "16-bit-wrapper",
    summary="ZeRO comes to 16-bit training, or leaves it, or reduces the gradients of each micro-batch by itself.",
    why=(
        "Without ZeRO a wrapper keeps the fp32 copies of 16-bit weights, and makes the states of the optimizer by a step"
        " with zero gradients: weights decay once, and Adam's correction of its bias is one step ahead for the whole run."
        " ZeRO takes no such step since 0.13.2. In fp16 the wrapper also divides by a loss scale that the loss was never"
        " multiplied by, since 0.18.3. In fp32 there is no wrapper, and all stages compute the same."
    ),
    source=(
        "deepspeed/runtime/fp16/fused_optimizer.py:FP16_Optimizer.initialize_optimizer_states",
        "deepspeed/runtime/fp16/unfused_optimizer.py:FP16_UnfusedOptimizer.initialize_optimizer_states",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.backward",
    ),
    examples=(
        Example(
            _ADAM + '"bf16": {"enabled": true}}',
            _ADAM + '"bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
            "Without ZeRO the wrapper of bf16 takes a step with zero gradients before the first one: weights decay once, and"
            " the moments count it; ZeRO does not",
            paths=(STAGE,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _SGD + '"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}',
            _SGD + '"fp16": {"enabled": true}}',
            "Without ZeRO updates are divided by a loss scale that the loss was not multiplied by: they come out too small",
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},'
            ' "zero_optimization": {"stage": 1}}',
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},'
            ' "zero_optimization": {"stage": 2}}',
            "Gradients are reduced for every micro-batch and then summed, before summed and then reduced: the same up to"
            " the rounding of bf16",
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
        ),
        Example(
            _SGD + '"bf16": {"enabled": true}}',
            _SGD + '"bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
            "",
        ),
        Example(_ADAM + '"zero_optimization": {"stage": 0}}', _ADAM + '"zero_optimization": {"stage": 1}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what another wrapper makes of the same 16-bit training."""
    stages = pair.old.context.stage, pair.new.context.stage
    modes = mode(pair.old.context), mode(pair.new.context)
    if pair.change(STAGE) is None or None in stages or modes[0] != modes[1] or modes[0] not in {"fp16", "bf16"}:
        return
    if 0 in stages:
        yield from _wrapped(pair, modes[0])
    elif (1 in stages) and _accumulates(pair):
        late = stages[1] == 1
        first, second = "reduced for every micro-batch and then summed", "summed and then reduced"
        now, then = (second, first) if late else (first, second)
        yield pair.says(
            STAGE,
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
            message=f"Gradients are {now}, before {then}: the same up to the rounding of {modes[0]}",
            brief=f"gradient sums rounded otherwise in {modes[0]}",
        )


def _wrapped(pair: Pair, kind: str) -> Iterator[Explained]:
    bare = pair.new if pair.new.context.stage == 0 else pair.old
    told = []
    if kind == "fp16" and not before(bare.context, _UNSCALED_SINCE) and bare.number(DYNAMIC) != 1:
        told.append(
            "updates are divided by a loss scale that the loss was not multiplied by: they come out too small"
            f"{' unless Adam normalizes them' if _remembers(bare) else ''}"
        )
    if (_remembers(bare) or decays(bare)) and not before(bare.context, _LAZY_SINCE):
        told.append(
            f"the wrapper of {kind} takes a step with zero gradients before the first one: weights decay once, and the"
            " moments count it; ZeRO does not"
        )
    if told:
        yield pair.says(
            STAGE,
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
            message=f"Without ZeRO {'; and '.join(told)}",
            brief=f"{kind} {'without' if bare is pair.new else 'with'} ZeRO steps otherwise",
        )


def _remembers(side: Side) -> bool:
    """Return whether the optimizer has moments that count steps; one that the script makes may."""
    found = built(side)
    return found is None or "betas" in found.facts.parameters


def _accumulates(pair: Pair) -> bool:
    """Return whether there is more than one micro-batch in a step, as far as is known, and sums are not fp32."""
    steps = pair.new.number(STEPS)
    exact = dtype(pair.new.context.value(ACCUMULATION)) == "fp32"
    return (steps is None or steps > 1) and not exact
