"""The course of the learning rate that a scheduler section describes, in one sentence."""

from __future__ import annotations

from dsmigrate.editing.derived.optimizer import type_facts
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.scheduler._shared import default_peak

_PARAMS = "scheduler.params"
_LARGEST_RATE = 1e6


def course(context: Context) -> str:
    """Return what the schedule does to the learning rate: "0 → 0.0001 over 1000 steps (log), then constant".

    "" for a type without a warm-up, and where numbers are missing or make no sense. What the consumer fills in is
    called "auto".
    """
    facts = type_facts(context, "scheduler")
    if facts is None or "warmup_num_steps" not in facts.parameters:
        return ""
    steps = _warmup(context)
    how = _value(context, "warmup_type")
    how = how if isinstance(how, str) and how in {"log", "linear"} else "log"
    if not steps:
        return ""
    start, peak = ("", say("the optimizer's lr")) if facts.name == "WarmupCosineLR" else _rates(context)
    rise = f"{start} → {peak}" if start else say("up to {peak}", peak=peak)
    return (
        say(
            "{rise} over {steps} steps ({how}), then {rest}",
            rise=rise,
            steps=steps,
            how=how,
            rest=_rest(context, facts.name),
        )
        if peak
        else ""
    )


def _rest(context: Context, name: str) -> str:
    total = _value(context, "total_num_steps")
    until = "auto" if total is UNKNOWN else str(whole(total)) if whole(total) is not None else ""
    if name == "WarmupDecayLR":
        return say("linearly down until step {until}", until=until) if until else say("linearly down")
    if name == "WarmupCosineLR":
        return say("down along a cosine until step {until}", until=until) if until else say("down along a cosine")
    return say("constant")


def _warmup(context: Context) -> str:
    """Return the length of the warm-up; 1 is taken as 2 (deepspeed/runtime/lr_schedules.py:WarmupLR)."""
    value = _value(context, "warmup_num_steps")
    if value is UNKNOWN:
        return "auto"
    steps = whole(value)
    return "" if not steps else str(max(2, steps))


def _rates(context: Context) -> tuple[str, str]:
    low, high = _value(context, "warmup_min_lr"), _value(context, "warmup_max_lr")
    if high is None:
        high = _value_of(context, "optimizer.params.lr", MISSING)
        if high is MISSING:
            return _rate(low), say("the optimizer's lr")
    return _rate(low), _rate(high)


def _rate(value: object) -> str:
    if value is UNKNOWN:
        return "auto"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST_RATE:
        return ""
    return json_text(value).removesuffix(".0")


def _value(context: Context, name: str) -> object:
    """Return a parameter as the schedule will take it: UNKNOWN when it is filled in, its default when left out."""
    facts = type_facts(context, "scheduler")
    parameter = facts.parameters.get(name) if facts is not None else None
    if parameter is None:
        return MISSING
    default = default_peak(context, parameter) if name == "warmup_max_lr" else parameter.default
    value = _value_of(context, f"{_PARAMS}.{name}", default)
    return None if value is MISSING and name == "warmup_max_lr" else value


def _value_of(context: Context, path: str, default: object) -> object:
    value = context.value(path)
    return default if value is MISSING else value
