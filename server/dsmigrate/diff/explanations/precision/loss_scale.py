"""The loss scale of fp16: fixed or adapting, where it starts, how it moves."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.precision._scale import POWER, is_dynamic, start
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say
from dsmigrate.rules.precision._shared import DYNAMIC, FP16, mode

_WINDOW = "fp16.loss_scale_window"
_HYSTERESIS = "fp16.hysteresis"
_CONSECUTIVE = "fp16.consecutive_hysteresis"
_LEAST = "fp16.min_loss_scale"
_START = '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true'


@explanation(
    "DF303",
    "loss-scale",
    summary="The loss scale of fp16 is fixed or adapts, starts elsewhere, or moves otherwise.",
    why=(
        "The scale keeps small gradients above the range where fp16 ends; a step whose gradients overflow is skipped."
        " At ZeRO 1 to 3 all scales that are powers of two give the same numbers as long as nothing overflows or"
        " underflows. A checkpoint of theirs brings the scaler along, which wins over the config."
    ),
    source=(
        "deepspeed/runtime/fp16/loss_scaler.py:DynamicLossScaler.update_scale",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer._load_global_state",
    ),
    examples=(
        Example(
            _START + "}}",
            _START + ', "loss_scale": 128}}',
            "The loss scale stays at 128; previously it adapted, from 65536",
            paths=(DYNAMIC,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _START + ', "loss_scale": 1}}',
            _START + "}}",
            "The loss scale adapts now, from 65536; previously it stayed at 1, which is none",
        ),
        Example(
            _START + ', "initial_scale_power": 16}}',
            _START + ', "initial_scale_power": 12}}',
            "The loss scale starts at 4096 instead of 65536: fewer steps are skipped at the start",
            paths=(POWER,),
            severity=Severity.INFO,
        ),
        Example(
            _START + ', "loss_scale_window": 1000}}',
            _START + ', "loss_scale_window": 100}}',
            "The loss scale doubles after 100 steps without overflow instead of 1000: it meets the limit more often,"
            " and skips a step each time",
        ),
        Example(
            _START + ', "hysteresis": 2}}',
            _START + ', "hysteresis": 1}}',
            "The loss scale halves at the 1st overflow instead of the 2nd",
        ),
        Example(
            _START + ', "min_loss_scale": 1}}',
            _START + ', "min_loss_scale": 128}}',
            "An overflow at the loss scale 128 ends the run, previously at 1",
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": "auto", "initial_scale_power": 16}}',
            '{"train_batch_size": 8, "fp16": {"enabled": "auto", "initial_scale_power": 10}}',
            "The loss scale starts at 1024 instead of 65536: fewer steps are skipped at the start, if Transformers"
            " Trainer turns fp16 on",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(_START + ', "loss_scale": 128}}', _START + ', "loss_scale": 128, "initial_scale_power": 8}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what the scale does now, while fp16 is on on both sides."""
    if not all(mode(side.context) in {"fp16", None} and side.is_on(FP16) is not False for side in (pair.old, pair.new)):
        return
    change = pair.change(DYNAMIC)
    if change is not None:
        yield from _kind(pair)
    if is_dynamic(pair.old) is False or is_dynamic(pair.new) is False:
        return
    for path, write in _MOVES:
        change = pair.change(path)
        if change is not None and all(value is not None and value == int(value) for value in pair.numbers(path)):
            yield pair.says(
                path,
                effects=(Effect.NUMERICS,),
                severity=Severity.INFO,
                message=f"{write(pair, change)}{_condition(pair)}",
                brief=_BRIEFS[path],
            )


def _kind(pair: Pair) -> Iterator[Explained]:
    before, after = pair.numbers(DYNAMIC)
    if before is None or after is None:
        return
    if after and before:
        message = say("The loss scale stays at {after} instead of {before}", after=number(after), before=number(before))
    elif after:
        message = say(
            "The loss scale stays at {fixed}; previously it adapted{from_}",
            fixed=_fixed(after),
            from_=_from(pair, new=False),
        )
    else:
        message = say(
            "The loss scale adapts now{from_}; previously it stayed at {fixed}",
            from_=_from(pair, new=True),
            fixed=_fixed(before),
        )
    others = [path for path in (POWER, _WINDOW, _HYSTERESIS, _CONSECUTIVE, _LEAST) if pair.change(path) is not None]
    yield pair.says(
        DYNAMIC,
        *(others if not (before and after) else []),
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=f"{message}{_condition(pair)}",
        advice=say("Steps that overflow are skipped, and nothing lowers a fixed scale") if after else "",
        brief=say("loss scale {after}", after=number(after)) if after else say("dynamic loss scale"),
    )


def _condition(pair: Pair) -> str:
    """Return on what all of it depends, where the consumer decides about fp16; "" where it is on."""
    open_ = any(side.is_on(FP16) is None for side in (pair.old, pair.new))
    return say(", if {consumer} turns fp16 on", consumer=pair.new.context.consumer.title) if open_ else ""


def _fixed(scale: float) -> str:
    return say("1, which is none") if scale == 1 else number(scale)


def _from(pair: Pair, *, new: bool) -> str:
    words = start(pair.new if new else pair.old)
    return say(", from {words}", words=words) if words.isdecimal() else ""


def _power(pair: Pair, change: Change) -> str:  # noqa: ARG001 - one of several
    before, after = pair.numbers(POWER)
    old, new = start(pair.old), start(pair.new)
    fewer = say("fewer") if (after or 0) < (before or 0) else say("more")
    if not (old.isdecimal() and new.isdecimal()):
        return say(
            "The loss scale starts at 2 to the power of {after}, previously of {before}",
            after=shown(after),
            before=shown(before),
        )
    return say(
        "The loss scale starts at {new} instead of {old}: {fewer} steps are skipped at the start",
        new=new,
        old=old,
        fewer=fewer,
    )


def _window(pair: Pair, change: Change) -> str:  # noqa: ARG001 - one of several
    before, after = pair.numbers(_WINDOW)
    often = say("more") if (after or 0) < (before or 0) else say("less")
    return say(
        "The loss scale doubles after {after} steps without overflow instead of {before}: it meets the "
        "limit {often} often, and skips a step each time",
        after=number(after),
        before=number(before),
        often=often,
    )


def _hysteresis(pair: Pair, change: Change) -> str:  # noqa: ARG001 - one of several
    before, after = pair.numbers(_HYSTERESIS)
    if (after or 0) < 1:
        return say("The loss scale never falls any more: an overflow that repeats stops training without an error")
    return say(
        "The loss scale halves at the {nth} overflow instead of the {nth_2}", nth=_nth(after), nth_2=_nth(before)
    )


def _consecutive(pair: Pair, change: Change) -> str:  # noqa: ARG001 - one of several
    if pair.new.is_on(_CONSECUTIVE):
        return say("Only overflows in a row lower the loss scale now; previously single ones added up")
    return say("Single overflows add up until they lower the loss scale; previously only those in a row did")


def _least(pair: Pair, change: Change) -> str:  # noqa: ARG001 - one of several
    before, after = pair.numbers(_LEAST)
    if pair.new.context.stage in {1, 2, 3}:
        return say(
            "An overflow at the loss scale {after} ends the run, previously at {before}",
            after=number(after),
            before=number(before),
        )
    return say(
        "The loss scale falls no further than {after}, previously {before}", after=number(after), before=number(before)
    )


def _nth(count: float | None) -> str:
    return say("{count}{en_th}", count=number(count), en_th={1: "st", 2: "nd", 3: "rd"}.get(int(count or 0), "th"))


_MOVES = (
    (POWER, _power),
    (_WINDOW, _window),
    (_HYSTERESIS, _hysteresis),
    (_CONSECUTIVE, _consecutive),
    (_LEAST, _least),
)
_BRIEFS = {
    POWER: mark("first loss scale"),
    _WINDOW: mark("growth of the loss scale"),
    _HYSTERESIS: mark("fall of the loss scale"),
    _CONSECUTIVE: mark("fall of the loss scale"),
    _LEAST: mark("least loss scale"),
}
