"""Who decides the learning rate of a step: the optimizer, or a schedule with rates of its own."""

from __future__ import annotations

from dsmigrate.diff.pair import Pair
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.optimizer import type_facts
from dsmigrate.editing.derived.schedule import course
from dsmigrate.knowledge import MISSING, TypeFacts
from dsmigrate.rules.scheduler._shared import default_peak

TYPE = "scheduler.type"
PARAMS = "scheduler.params"
RATES = ("lr", "muon_lr", "adam_lr")
"""The learning rates among the parameters of optimizers."""
_OWN = {"WarmupDecayLR": "warmup_max_lr", "OneCycle": "cycle_max_lr", "LRRangeTest": "lr_range_test_min_lr"}
"""Schedules that never look at the rate of the optimizer, with the parameter that they take instead."""


def built(side: Side) -> TypeFacts | None:
    """Return the schedule that DeepSpeed builds of a side; None for none."""
    return type_facts(side.context, "scheduler")


def replaces(side: Side) -> str:
    """Return the parameter of the schedule that counts instead of the optimizer's learning rate; "" for none."""
    facts = built(side)
    if facts is None:
        return ""
    if facts.name == "WarmupLR":
        parameter = facts.parameters["warmup_max_lr"]
        written = side.value(f"{PARAMS}.warmup_max_lr") not in (MISSING, None)
        return "warmup_max_lr" if written or default_peak(side.context, parameter) is not MISSING else ""
    return _OWN.get(facts.name, "")


def is_another(pair: Pair) -> bool:
    """Return whether the schedule comes, goes, or becomes another type."""
    before, after = built(pair.old), built(pair.new)
    return (before.name if before else None) != (after.name if after else None)


def described(side: Side) -> str:
    """Return the course of a side's schedule, "" where it cannot be told in a line."""
    return course(side.context)
