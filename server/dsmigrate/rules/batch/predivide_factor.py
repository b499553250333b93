"""DS257: a predivide factor that breaks the mean."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import predivides, scatters
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule

_FACTOR = "gradient_predivide_factor"


@rule(
    "DS257",
    "predivide-factor",
    summary="`gradient_predivide_factor` 0, or one that ZeRO 3 never multiplies back.",
    why="Gradients are divided by the factor before the all-reduce and multiplied by factor / ranks after it. 0 is "
    "a `ZeroDivisionError` in the first reduction. ZeRO 3 with `reduce_scatter` false leaves the second step out "
    "when the factor equals the number of ranks, so that gradients stay too small by that factor.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/engine.py:allreduce_bucket",
        "deepspeed/runtime/zero/stage3.py:__avg_scatter_contiguous_grads",
    ),
    keys=(_FACTOR,),
    examples=(
        Example(
            '{"train_batch_size": 1, "gradient_predivide_factor": «0»}\n',
            fixed='{"train_batch_size": 1}\n',
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "gradient_predivide_factor": «4», '
            '"zero_optimization": {"stage": 3, "reduce_scatter": false}}\n',
            fixed='{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "reduce_scatter": false}}\n',
            facts=Facts(world_size=4),
        ),
        Example('{"train_batch_size": 1, "gradient_predivide_factor": 2}\n'),
        Example('{"train_batch_size": 1, "gradient_predivide_factor": 0, "zero_optimization": {"stage": 1}}\n'),
        Example('{"train_batch_size": 1, "gradient_predivide_factor": 0, "prescale_gradients": true}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a factor of 0 that is used, and for the one that ZeRO 3 loses."""
    factor = context.number(_FACTOR)
    if factor is None or not context.has(_FACTOR) or not predivides(context):
        return
    plain = context.stage in {0, 1} or (context.stage == 2 and scatters(context) is False)
    fixes = [context.remove(_FACTOR, say("Remove `{factor}`", factor=_FACTOR), safe=False)]
    if factor == 0 and plain:
        yield context.finding(
            _FACTOR, say("0 is a ZeroDivisionError in the first gradient reduction; 1 divides nothing"), fixes=fixes
        )
    ranks = context.facts.world_size
    if context.stage == 3 and scatters(context) is False and ranks and factor == ranks != 1:
        yield context.finding(
            _FACTOR,
            say(
                "ZeRO 3 divides by {ranks} and never multiplies back: gradients are {ranks} times too small",
                ranks=ranks,
            ),
            severity=Severity.WARNING,
            effect=Effect.RISKY,
            fixes=fixes,
        )
