"""DS255: gradients divided ahead of a reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import scatters, sums
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_PRESCALE = "prescale_gradients"
_FACTOR = "gradient_predivide_factor"
_SCATTER = "zero_optimization.reduce_scatter"


@rule(
    "DS255",
    "gradient-scaling-with-reduce-scatter",
    summary="`prescale_gradients` or `gradient_predivide_factor` with the reduce-scatter of ZeRO 2 or 3.",
    why="ZeRO 2 and 3 assert that gradients are neither prescaled nor predivided while "
    "`zero_optimization.reduce_scatter` is on, which is its default. Stage 2 lets both pass with "
    '`gradient_allreduce_op` `"sum"`, where they do nothing.',
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",
        "deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3",
    ),
    keys=(_PRESCALE, _FACTOR, _SCATTER),
    examples=(
        Example(
            '{"train_batch_size": 1, "prescale_gradients": «true», "zero_optimization": {"stage": 2}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "gradient_predivide_factor": «2», "zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3}}\n',
        ),
        Example('{"train_batch_size": 1, "prescale_gradients": true, "zero_optimization": {"stage": 1}}\n'),
        Example('{"train_batch_size": 1, "gradient_predivide_factor": 1, "zero_optimization": {"stage": 2}}\n'),
        Example(
            '{"train_batch_size": 1, "prescale_gradients": true, '
            '"zero_optimization": {"stage": 2, "reduce_scatter": false}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "gradient_predivide_factor": 2, "gradient_allreduce_op": "sum", '
            '"zero_optimization": {"stage": 2}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the two keys that stage 2 or 3 refuses."""
    if context.stage not in {2, 3} or not scatters(context):
        return
    if context.stage == 2 and sums(context):
        return
    factor = context.number(_FACTOR)
    for path, refused in ((_PRESCALE, context.is_on(_PRESCALE)), (_FACTOR, factor is not None and factor != 1)):
        if refused and context.has(path):
            yield context.finding(
                path,
                say(
                    "ZeRO {stage} refuses this while `{scatter}` is on, which it is unless set to false",
                    stage=context.stage,
                    scatter=_SCATTER,
                ),
                fixes=[context.remove(path, say("Remove `{path}`", path=path), safe=True)],
            )
