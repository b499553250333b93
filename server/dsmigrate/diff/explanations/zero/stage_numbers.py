"""What another stage does to numbers: how 16-bit gradients are summed, and how stage 0 starts."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import STAGE
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import precision
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import mode

_ONE = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}'
_FOUR = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}'
_STAGE = ', "zero_optimization": {"stage": %d}}'


@explanation(
    "DF404",
    "zero-stage-numbers",
    summary="Another stage sums 16-bit gradients in another order, or starts Adam otherwise.",
    why=(
        "All stages compute the same in exact arithmetic, but for one thing: fp16 and bf16 at stage 0 start with an"
        " optimizer step on zero gradients, which allocates the states, counts as a step for Adam's bias correction and"
        " decays the weights once. And stages 0 and 1 sum the micro-batches on each GPU before they reduce, stages 2"
        " and 3 reduce each one, so that 16-bit sums round otherwise."
    ),
    source=(
        "deepspeed/runtime/fp16/fused_optimizer.py:initialize_optimizer_states",
        "deepspeed/runtime/fp16/unfused_optimizer.py:initialize_optimizer_states",
        "deepspeed/runtime/engine.py:allreduce_gradients",
    ),
    examples=(
        Example(
            _FOUR + _STAGE % 1,
            _FOUR + _STAGE % 2,
            "Gradients are reduced in bf16 micro-batch by micro-batch, not summed on each GPU before: sums round"
            " otherwise",
            paths=(STAGE,),
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
        ),
        Example(
            _ONE + _STAGE % 0,
            _ONE + _STAGE % 1,
            "Without the step on zero gradients that 16-bit training starts with at stage 0, Adam's bias correction"
            " begins with the first real step and weights decay once less",
            severity=Severity.WARNING,
        ),
        Example(
            _FOUR + _STAGE % 3,
            _FOUR + _STAGE % 0,
            "Training in 16 bit at stage 0 starts with an optimizer step on zero gradients, so that Adam's bias"
            " correction is one step ahead and weights decay once more; gradients are summed on each GPU in bf16 and"
            " reduced once, so that sums round otherwise",
        ),
        Example(
            _ONE + ', "optimizer": {"type": "SGD", "params": {"lr": 0.1, "weight_decay": 0.01}}' + _STAGE % 1,
            _ONE + ', "optimizer": {"type": "SGD", "params": {"lr": 0.1, "weight_decay": 0.01}}' + _STAGE % 0,
            "Training in 16 bit at stage 0 starts with an optimizer step on zero gradients, so that weights decay once"
            " more",
            severity=Severity.WARNING,
        ),
        Example(_ONE + _STAGE % 2, _ONE + _STAGE % 3, ""),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 0}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what happens to numbers in 16 bit."""
    before, after = pair.old.context.stage, pair.new.context.stage
    formats = {mode(side.context) for side in (pair.old, pair.new)}
    if pair.change(STAGE) is None or before is None or after is None or not formats <= {"fp16", "bf16"}:
        return
    first = list(_start(pair, before, after))
    clauses = [*first, *_sums(pair, before, after)]
    if clauses:
        said = "; ".join(clauses)
        yield pair.says(
            STAGE,
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING if first else Severity.INFO,
            message=said[:1].upper() + said[1:],
            brief=say("an optimizer step on zero gradients at the start")
            if first
            else say("rounding of gradient sums"),
        )


def _start(pair: Pair, before: int, after: int) -> Iterator[str]:
    """Yield what the empty step at the start of stage 0 does, or no longer does: it counts for Adam, and decays."""
    facts = pair.new.context.type_of("optimizer")
    counts = facts is None or "betas" in facts.parameters
    decays = facts is None or bool(pair.new.number("optimizer.params.weight_decay"))
    if bool(before) is bool(after) or not (counts or decays):
        return
    if after:
        does = [say("Adam's bias correction begins with the first real step")] if counts else []
        does += [say("weights decay once less")] if decays else []
        yield say(
            "without the step on zero gradients that 16-bit training starts with at stage 0, {does}",
            does=say(" and ").join(does),
        )
    else:
        does = [say("Adam's bias correction is one step ahead")] if counts else []
        does += [say("weights decay once more")] if decays else []
        yield say(
            "training in 16 bit at stage 0 starts with an optimizer step on zero gradients, so that {does}",
            does=say(" and ").join(does),
        )


def _sums(pair: Pair, before: int, after: int) -> Iterator[str]:
    often, formats = after > 1, precision(pair.new.context)
    batches = [side.triad.steps if side.triad is not None else None for side in (pair.old, pair.new)]
    if (before > 1) is often or None in batches or 1 in batches:
        return
    if often:
        yield say(
            "gradients are reduced in {communication} micro-batch by micro-batch, not summed on each GPU "
            "before: sums round otherwise",
            communication=formats.communication,
        )
    else:
        yield say(
            "gradients are summed on each GPU in {sums} and reduced once, so that sums round otherwise",
            sums=formats.sums,
        )
