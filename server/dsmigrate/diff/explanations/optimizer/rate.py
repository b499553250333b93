"""The learning rate of the optimizer, as far as the schedule lets it count."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dsmigrate.diff.explanations.optimizer._built import PARAMS, built
from dsmigrate.diff.explanations.schedule._owner import RATES, is_another, replaces
from dsmigrate.diff.explanations.schedule._owner import built as schedule
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import factor, number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import mark, say

_KEY = f"{PARAMS}.lr"
_HALVES = {"muon_lr": mark("of the matrices that Muon updates"), "adam_lr": mark("of what Adam updates next to Muon")}
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": '


@explanation(
    "DF603",
    "learning-rate",
    summary="The learning rate of the optimizer is another one, where a schedule does not replace it.",
    why=(
        "Without a schedule the rate of the optimizer is the rate of every step. WarmupCosineLR multiplies it, WarmupLR"
        " rises to it unless `warmup_max_lr` is written, and a schedule of torch starts from it. WarmupDecayLR,"
        " OneCycle and LRRangeTest never look at it. Groups that the script passes with an `lr` of their own keep"
        " that."
    ),
    source=(
        "deepspeed/runtime/lr_schedules.py:WarmupLR",
        "deepspeed/runtime/lr_schedules.py:WarmupDecayLR",
        "deepspeed/runtime/lr_schedules.py:WarmupCosineLR",
    ),
    examples=(
        Example(
            _ADAM + "1e-4}}}",
            _ADAM + "2e-4}}}",
            "The learning rate is 0.0002 instead of 0.0001, twice as high",
            paths=(_KEY,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW"}}',
            _ADAM + "1e-5}}}",
            "The learning rate is 1e-05 instead of 0.001, the default, 1/100 as high",
        ),
        Example(
            _ADAM + '1e-4}}, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 100}}}',
            _ADAM + '3e-4}}, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 100}}}',
            "The peak of WarmupCosineLR is 0.0003 instead of 0.0001, 3 times as high, and every other step with it",
        ),
        Example(
            _ADAM + '1e-4}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3}}}',
            _ADAM + '3e-4}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3}}}',
            "Does nothing: WarmupLR puts `warmup_max_lr`, 0.001, in its place",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            _ADAM + '1e-4}}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100}}}',
            _ADAM + '3e-4}}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100}}}',
            "Does nothing: WarmupDecayLR puts `warmup_max_lr`, 0.001, in its place",
        ),
        Example(_ADAM + "1e-4}}}", _ADAM + "0.0001}}}", ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the rate, half by half for Muon."""
    if built(pair.old) is None or built(pair.new) is None:
        return
    for name in RATES:
        change = pair.change(f"{PARAMS}.{name}")
        if change is not None:
            yield from _rate(pair, change, name)


def _rate(pair: Pair, change: Change, name: str) -> Iterator[Explained]:
    before, after = pair.numbers(change.path)
    if before is None or after is None:
        return
    replaced = [replaces(side) for side in (pair.old, pair.new)]
    if all(replaced):
        yield pair.says(change.path, effects=(Effect.NONE,), severity=Severity.NONE, message=_replaced(pair))
        return
    if is_another(pair):
        return  # told with the schedule
    facts = schedule(pair.new)
    what = say("The learning rate {halves}", halves=say(_HALVES[name])) if name in _HALVES else say("The learning rate")
    if facts is not None and not facts.torch and name == "lr":
        what = say("The peak of {facts_name}", facts_name=facts.name)
    was = f"{number(before)}{say(', the default') if change.old is MISSING else ''}"
    now = f"{number(after)}{say(', the default,') if change.new is MISSING else ''}"
    rest = say(", and every other step with it") if facts is not None and facts.name == "WarmupCosineLR" else ""
    yield pair.says(
        change.path,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say(
            "{what} is {now} instead of {was}{as_high}{rest}",
            what=what,
            now=now,
            was=was,
            as_high=as_high(before, after),
            rest=rest,
        ),
        brief=f"{name if name in _HALVES else say('learning rate')} {number(before)} → {number(after)}",
    )


def as_high(before: float, after: float) -> str:
    """Return how high a rate is for the one before: ", 3 times as high"; "" where that says nothing."""
    if before <= 0 or after <= 0:
        return ""
    ratio = Fraction(str(after)) / Fraction(str(before))
    if ratio in _HIGH:
        return say(_HIGH[ratio])
    en_times = "" if ratio.numerator == 1 else " times"
    return say(", {factor}{en_times} as high", factor=factor(ratio), en_times=en_times)


_HIGH = {Fraction(2): mark(", twice as high"), Fraction(1, 2): mark(", half as high")}


def _replaced(pair: Pair) -> str:
    facts, name = schedule(pair.new), replaces(pair.new)
    assert facts is not None  # noqa: S101 - it replaces the rate
    value = pair.new.number(f"scheduler.params.{name}")
    return say(
        "Does nothing: {facts_name} puts `{name}`{more} in its place",
        facts_name=facts.name,
        name=name,
        more=say(", {value},", value=number(value)) if value is not None else "",
    )
