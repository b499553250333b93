"""The format in which gradients of micro-batches are summed."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import STEPS, text
from dsmigrate.rules.precision._shared import ACCUMULATION, uses_bf16_optimizer

_SUMMED = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},'


@explanation(
    "DF306",
    "gradient-sums",
    summary="Gradients are summed over micro-batches in another number format.",
    why=(
        "Unset, the sum has the format of the weights: in bf16 a late small gradient is rounded away against the sum of"
        " the earlier ones. At stage 1 with bf16 weights an fp32 sum also brings another optimizer wrapper,"
        " `BF16_Optimizer`, unless the optimizer is offloaded to the CPU. The reduction over ranks has a format of its"
        " own."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.get_data_types",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._do_optimizer_sanity_check",
    ),
    examples=(
        Example(
            _SUMMED + ' "zero_optimization": {"stage": 2}}',
            _SUMMED + ' "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "fp32"}}',
            "Gradients of 8 micro-batches are summed in fp32 instead of bf16: twice the bytes for the sums",
            paths=(ACCUMULATION,),
            effects=(Effect.NUMERICS, Effect.MEMORY),
            severity=Severity.WARNING,
        ),
        Example(
            _SUMMED + ' "zero_optimization": {"stage": 1}}',
            _SUMMED + ' "zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"}}',
            "Gradients of 8 micro-batches are summed in fp32 instead of bf16, on every rank in full, and the"
            " optimizer of ZeRO 1 becomes `BF16_Optimizer`",
            effects=(Effect.NUMERICS, Effect.MEMORY),
        ),
        Example(
            _SUMMED + ' "zero_optimization": {"stage": 2}}',
            _SUMMED + ' "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "bf16"}}',
            "Gradients are summed in bf16 either way, the format of the weights",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            _SUMMED + ' "data_types": {"grad_accum_dtype": "bf16"}}',
            _SUMMED + ' "data_types": {"grad_accum_dtype": "bfloat16"}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield in what format the sums are now."""
    before, after = (precision(side.context).sums for side in (pair.old, pair.new))
    if pair.change(ACCUMULATION) is None or before is None or after is None:
        return
    if before == after:
        yield pair.says(
            ACCUMULATION,
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            message=say("Gradients are summed in {after} either way, the format of the weights", after=after),
        )
        return
    steps = pair.new.number(STEPS)
    of = say(" of {steps} micro-batches", steps=text(steps)) if steps is not None and steps > 1 else ""
    message = say("Gradients{of} are summed in {after} instead of {before}", of=of, after=after, before=before)
    old, new = (uses_bf16_optimizer(side.context) for side in (pair.old, pair.new))
    if new and not old:
        message += say(", on every rank in full, and the optimizer of ZeRO 1 becomes `BF16_Optimizer`")
    elif old and not new:
        message += say(", and `BF16_Optimizer` becomes the optimizer of ZeRO 1")
    else:
        bytes_ = WIDTHS[after] / WIDTHS[before]
        message += {2: say(": twice the bytes for the sums"), 0.5: say(": half the bytes for the sums")}.get(bytes_, "")
    yield pair.says(
        ACCUMULATION,
        effects=(Effect.NUMERICS, Effect.MEMORY),
        severity=Severity.WARNING,
        message=message,
        brief=say("gradients summed in {after}", after=after),
    )
