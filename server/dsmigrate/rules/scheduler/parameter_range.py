"""DS732: a parameter of the schedule outside of its range."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Node
from dsmigrate.knowledge import Parameter
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import INSTEAD_OF_TOTAL, OPEN, WHOLE, is_checked, schedule
from dsmigrate.rules.typed import Whole, given, misfit, outside, parameters, whole

_DIVISORS = {"T_max": Effect.CRASH, "step_size": Effect.CRASH, "step_size_up": Effect.REJECTED}
"""Lengths that torch does not check and divides by."""
_DIVIDES_UNCHECKED = frozenset({"cycle_first_step_size"})
"""What DeepSpeed divided by before it checked it."""


@rule(
    "DS732",
    "scheduler-parameter-range",
    summary="A parameter of the schedule whose value is outside of its range.",
    why="The schedules check some of their parameters when the engine is built and stop with a `ValueError`: "
    "OneCycle its step sizes since 0.19.4 (a first one of 0 was a `ZeroDivisionError` before), torch's schedules "
    "their factors, shares and modes. torch does not check some lengths and divides by them, which is a "
    "`ZeroDivisionError`; so is a `power` below 0 once the schedule ends.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/lr_schedules.py:OneCycle._initialize_cycle",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_first_step_size": «0»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "LinearLR", "params": {"start_factor": «2»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycleLR", "params": {"max_lr": 0.1, "total_steps": 100, '
            '"anneal_strategy": «"cosine"»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycleLR", "params": {"max_lr": 0.1, "total_steps": 100, '
            '"pct_start": «1»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": «0»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "PolynomialLR", "params": {"power": «-1»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_second_step_size": 0}}}'
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycleLR", "params": {"max_lr": 0.1, "total_steps": 100, '
            '"epochs": 0}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value of the right type that is out of range."""
    facts = schedule(context)
    if facts is None:
        return
    total = given(context, "scheduler").get("total_steps")
    for entry in parameters(context, "scheduler"):
        parameter = facts.parameters.get(entry.name)
        if parameter is None or entry.node is None or entry.name in WHOLE or misfit(parameter, entry.node.value()):
            continue
        divides = entry.name in _DIVIDES_UNCHECKED and entry.node.value() == 0
        if not (is_checked(context, entry.name) or divides) or (entry.name in INSTEAD_OF_TOTAL and total is not None):
            continue
        value = entry.node.value()
        wrong = _wrong(context, parameter, entry.node)
        if wrong is not None:
            allowed, effect = wrong
            does = (
                say("the engine cannot build the schedule")
                if effect is Effect.REJECTED
                else say("the schedule fails in a step")
            )
            yield context.finding(
                entry,
                say(
                    "{name} of `{facts_name}` must be {allowed}, not {value}: {does}",
                    name=shown(entry.name),
                    facts_name=facts.name,
                    allowed=allowed,
                    value=json_text(value),
                    does=does,
                ),
                effect=effect,
            )


def _wrong(context: Context, parameter: Parameter, node: Node) -> tuple[str, Effect] | None:
    """Return what a value must be when it is not, and what becomes of it."""
    value = node.value()
    if parameter.enum:
        listed = value in parameter.enum or parameter.name in OPEN or value == "auto"
        return None if listed else (say(" or ").join(json_text(name) for name in parameter.enum), Effect.REJECTED)
    if not isinstance(value, (int, float)) or parameter.type == ("boolean",):
        return None
    if parameter.name == "factor" and "lowers" not in parameter.english and "reduction" in parameter.english:
        return None if value < 1 else (say("below 1"), Effect.REJECTED)
    allowed = outside(parameter, value)
    if allowed is not None:
        later = parameter.name == "factor" and value == 0
        return allowed, Effect.CRASH if later else Effect.REJECTED
    if parameter.name == "power" and value < 0:
        return say("at least 0"), Effect.CRASH
    if parameter.name in _DIVISORS and value == 0:
        return say("other than 0"), _DIVISORS[parameter.name]
    if parameter.name == "pct_start" and whole(context, node) is not Whole.FLOAT and value in {0, 1}:
        spelled = whole(context, node) is Whole.INT
        return say("a float between 0 and 1"), Effect.REJECTED if spelled else Effect.CRASH
    return None
