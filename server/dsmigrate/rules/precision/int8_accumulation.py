"""DS341: gradients summed as small integers."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import ACCUMULATION, dtype, given, offloads
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before

_CRASHES_SINCE = "0.19.8"


@rule(
    "DS341",
    "int8-accumulation",
    summary='`data_types.grad_accum_dtype` "int8" under ZeRO.',
    why="The name is accepted, and no gradient survives it: at stage 1 in 0.19.8, unless `reduce_scatter` or "
    "`contiguous_gradients` is off, the first step raises `RuntimeError: result type Float can't be cast to the "
    "desired output type Char`; elsewhere every gradient is cut down to a whole number between -128 and 127.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:_fill_param_grad_accum_attribute",),
    keys=(ACCUMULATION,),
    examples=(
        Example(
            '{"train_batch_size": 1, "data_types": {"grad_accum_dtype": «"int8"»}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "data_types": {}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "data_types": {"grad_accum_dtype": «"int8"»}, '
            '"zero_optimization": {"stage": 1, "reduce_scatter": false}}\n',
            fixed='{"train_batch_size": 1, "data_types": {}, "zero_optimization": {"stage": 1, "reduce_scatter": '
            "false}}\n",
        ),
        Example(
            '{"train_batch_size": 1, "data_types": {"grad_accum_dtype": «"torch.int8"»}, '
            '"zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "data_types": {}, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 2}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at stages 1 to 3; stage 0 refuses the format as a whole."""
    if given(context, ACCUMULATION) is None or dtype(context.value(ACCUMULATION)) != "int8" or not context.stage:
        return
    contiguous = context.is_on("zero_optimization.contiguous_gradients") is not False or offloads(context)
    scattered = context.is_on("zero_optimization.reduce_scatter") is not False
    first = context.stage == 1 and bool(contiguous) and scattered and not before(context, _CRASHES_SINCE)
    yield context.finding(
        ACCUMULATION,
        say("int8 cannot hold gradients: ")
        + (say("the first step is a RuntimeError") if first else say("they become whole numbers")),
        severity=Severity.ERROR if first else None,
        effect=Effect.CRASH if first else None,
        fixes=[context.remove(ACCUMULATION, say("Remove `{accumulation}`", accumulation=ACCUMULATION), safe=False)],
    )
