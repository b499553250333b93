"""How gradients of the ranks become one: mean or sum, divided before or after."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.languages import mark, say
from dsmigrate.rules.batch._shared import predivides, scatters

_OP = "gradient_allreduce_op"
_PRESCALE = "prescale_gradients"
_FACTOR = "gradient_predivide_factor"


@explanation(
    "DF309",
    "sum-of-ranks",
    summary="Gradients of the ranks are summed instead of averaged, or the other way round.",
    why=(
        "`sum` leaves out the division by the number of data-parallel ranks, for losses that are divided by the size of"
        " the global batch already. With an ordinary mean loss every gradient is larger by that number; clipping then"
        " bites far more often, and SGD takes steps that much larger."
    ),
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine.allreduce_bucket",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "gradient_allreduce_op": "sum"}',
            "Gradients of the ranks are summed, no longer averaged: larger by the number of data-parallel ranks",
            paths=(_OP,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "gradient_allreduce_op": "sum"}',
            '{"train_batch_size": 8}',
            "Gradients of the ranks are averaged, no longer summed: smaller by the number of data-parallel ranks",
        ),
        Example(
            '{"train_batch_size": 8, "gradient_allreduce_op": "mean"}',
            '{"train_batch_size": 8, "gradient_allreduce_op": "MEAN"}',
            "",
        ),
    ),
)
def explain_operation(pair: Pair) -> Iterator[Explained]:
    """Yield what the reduction does now."""
    change = pair.change(_OP)
    if change is None or [change.old_meant, change.new_meant] not in (["mean", "sum"], ["sum", "mean"]):
        return
    sums = change.new_meant == "sum"
    yield pair.says(
        _OP,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say(
            "Gradients of the ranks are summed, no longer averaged: larger by the number of data-parallel ranks"
        )
        if sums
        else say("Gradients of the ranks are averaged, no longer summed: smaller by the number of data-parallel ranks"),
        advice=say("It fits only a loss that the script divides by the samples of all ranks") if sums else "",
        brief=say("gradients summed over ranks") if sums else say("gradients averaged over ranks"),
    )


@explanation(
    "DF310",
    "predivision",
    summary="Gradients are divided by the number of ranks at another moment of the reduction.",
    why=(
        "Dividing before the sum keeps fp16 from overflowing over many ranks, dividing after it keeps small values. The"
        " mean is the same up to rounding. Neither key acts in the reduce-scatter of ZeRO 1, nor with"
        ' `gradient_allreduce_op` "sum"; at ZeRO 2 and 3 with reduce-scatter they are refused.'
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.allreduce_bucket",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer.gradient_reduction_w_predivide",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "prescale_gradients": true}',
            "Gradients are divided by the number of ranks before they are summed and no longer after: the same mean up"
            " to rounding",
            paths=(_PRESCALE,),
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "gradient_predivide_factor": 4}',
            "Gradients are divided by 4 before they are summed, so far by 1, and by the rest afterwards: the same mean"
            " up to rounding",
            paths=(_FACTOR,),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "prescale_gradients": true}',
            "Does nothing: the reduce-scatter of ZeRO 1 divides before it sums anyway",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "gradient_predivide_factor": 1}', ""),
    ),
)
def explain_division(pair: Pair) -> Iterator[Explained]:
    """Yield when gradients are divided now."""
    for path, acts in ((_PRESCALE, _prescales), (_FACTOR, _factors)):
        change = pair.change(path)
        if change is None:
            continue
        if not any(acts(side) for side in (pair.old, pair.new)):
            yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=_NOTHING)
            continue
        yield pair.says(
            path,
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
            message=_prescaled(pair) if path == _PRESCALE else _divided(pair),
            brief=say("gradients divided at another moment"),
        )


_NOTHING = mark("Does nothing: the reduce-scatter of ZeRO 1 divides before it sums anyway")


def _prescaled(pair: Pair) -> str:
    first = pair.new.is_on(_PRESCALE)
    return (
        say(
            "Gradients are divided by the number of ranks before they are summed and no longer after: the same mean up "
            "to rounding"
        )
        if first
        else say(
            "Gradients are divided by the number of ranks after they are summed and no longer before: the same mean up "
            "to rounding"
        )
    )


def _divided(pair: Pair) -> str:
    before, after = pair.numbers(_FACTOR)
    return say(
        "Gradients are divided by {after} before they are summed, so far by {before}, and by the rest "
        "afterwards: the same mean up to rounding",
        after=number(after),
        before=number(before),
    )


def _prescales(side: Side) -> bool:
    return side.context.stage != 1 or scatters(side.context) is False


def _factors(side: Side) -> bool:
    return predivides(side.context)
