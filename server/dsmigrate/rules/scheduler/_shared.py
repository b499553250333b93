"""What a schedule takes, and when it can be built."""

from __future__ import annotations

import re

from dsmigrate.knowledge import MISSING, Parameter, TypeFacts
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.typed import before, built_type, given

CHECKED_SINCE = {
    "warmup_num_steps": "0.19.3",
    "lr_range_test_step_size": "0.19.4",
    "cycle_first_step_size": "0.19.4",
    "cycle_second_step_size": "0.19.4",
}
"""Since when DeepSpeed's schedules look at a step count; torch's always do."""

INSTEAD_OF_TOTAL = frozenset({"epochs", "steps_per_epoch"})
"""What torch's OneCycleLR looks at only without `total_steps`."""


def schedule(context: Context) -> TypeFacts | None:
    """Return the schedule type that the release builds for the file."""
    return built_type(context, "scheduler")


def is_checked(context: Context, name: str) -> bool:
    """Return whether the release looks at the value of a step count."""
    return not before(context, CHECKED_SINCE.get(name, context.known.version))


def warms_up(facts: TypeFacts | None) -> bool:
    """Return whether a schedule is one of the three with a warm-up."""
    return facts is not None and "warmup_num_steps" in facts.parameters


def steps(context: Context, name: str) -> int | float | None:
    """Return a step count as the schedule will take it, its default included; None when it is open or no number."""
    facts = schedule(context)
    parameter = None if facts is None else facts.parameters.get(name)
    if parameter is None:
        return None
    value = given(context, "scheduler").get(name, parameter.default)
    if value is MISSING or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


def wraps_optimizer(context: Context) -> str | None:
    """Return why the engine has no plain torch optimizer for a schedule of torch; None when it has one, or is open."""
    if context.stage:
        return say("ZeRO stage {stage}", stage=context.stage)
    for key in ("fp16.enabled", "bf16.enabled"):
        if context.is_on(key):
            return key.split(".", maxsplit=1)[0]
    return None


WHOLE = frozenset({"warmup_num_steps", "lr_range_test_step_size", "T_0", "T_mult", "total_steps"})
"""Step counts that must be an ``int`` for Python, 100.0 being none."""


def peak(context: Context) -> object:
    """Return the peak of a warm-up as the schedule takes it, MISSING when it depends on the script."""
    facts = schedule(context)
    parameter = None if facts is None else facts.parameters.get("warmup_max_lr")
    if parameter is None:
        return MISSING
    value = given(context, "scheduler").get("warmup_max_lr", default_peak(context, parameter))
    if value is None or value is MISSING:
        return given(context, "optimizer").get("lr", MISSING)
    return value


def default_peak(context: Context, parameter: Parameter) -> object:
    """Return the peak of a schedule that names none: a number, or MISSING for the optimizer's learning rate."""
    default = parameter.default
    for change in reversed(parameter.changes):
        if before(context, change.version):
            default = change.old
    return default


def cannot_be_written(facts: TypeFacts) -> bool:
    """Return whether a schedule needs what no JSON value is: a function, or other schedules."""
    return bool({"lr_lambda", "schedulers"} & set(facts.parameters))


_CLAUSE = re.compile(r"`(?P<name>\w+)` (?:(?P<on>true)|above (?P<bound>\d+)|`(?P<text>\w+)`)")


def unmet(context: Context, parameter: Parameter) -> str | None:
    """Return the first condition of ``Parameter.only_with`` that does not hold, in the spoken language."""
    params = given(context, "scheduler")
    facts = schedule(context)
    for clause in _CLAUSE.finditer(parameter.only_with):
        other = None if facts is None else facts.parameters.get(clause["name"])
        if other is None:
            continue
        value = params.get(clause["name"], other.default)
        if clause["on"]:
            met = bool(value)
        elif clause["bound"]:
            met = not isinstance(value, (int, float)) or value > float(clause["bound"])
        else:
            met = value == clause["text"]
        if not met:
            above = say("`{name}` above {bound}", name=clause["name"], bound=clause["bound"])
            return above if clause["bound"] else clause[0]
    return None


def has_one_group(context: Context) -> bool:
    """Return whether the optimizer has one parameter group, whoever makes them: ZeRO rebuilds torch's Adagrad."""
    built = built_type(context, "optimizer")
    on_gpu = context.device("offload_optimizer") == "none"
    return built is not None and built.name == "Adagrad" and on_gpu and context.stage in {1, 2, 3}


def has_momentum(context: Context, facts: TypeFacts) -> bool | None:
    """Return whether there is a momentum that the schedule could move; None when the script brings the optimizer.

    Under offload DeepSpeed takes nothing of a script but its own Adam and Lion for the CPU, unless told otherwise.
    """
    built = built_type(context, "optimizer")
    if facts.torch:
        return True
    if built is None:
        on_cpu = context.device("offload_optimizer") in {"cpu", "nvme"}
        return True if on_cpu and context.is_on("zero_force_ds_cpu_optimizer") else None
    return "betas" in built.parameters and not built.takes_anything


_COMPARED = frozenset({"decay_lr_rate", "decay_mom_rate"})
"""Rates of OneCycle that its constructor compares with 0, whether they are used later or not."""


def is_used(context: Context, facts: TypeFacts, parameter: Parameter) -> bool | None:
    """Return whether a schedule calculates with a parameter at all, sooner or later; None when that is open."""
    if parameter.name in INSTEAD_OF_TOTAL and given(context, "scheduler").get("total_steps") is not None:
        return False
    reason = unmet(context, parameter)
    if reason is not None and not (parameter.name in _COMPARED and "decay_step_size" in reason):
        return False
    return has_momentum(context, facts) if "cycle_momentum" in parameter.only_with else True


def is_compared_alone(facts: TypeFacts, name: str) -> bool:
    """Return whether a parameter is only looked for among the steps, so that a wrong one matches none of them."""
    return name == "milestones" or (name, facts.name) == ("total_iters", "ConstantLR")


OPEN = frozenset({"warmup_type", "scale_mode", "scale_fn", "last_batch_iteration", "lr_lambda", "schedulers"})
"""Parameters at which a text is not refused, or of schedules that no file can describe."""


def fails_on_text(context: Context, facts: TypeFacts, parameter: Parameter, text: str) -> bool | None:
    """Return whether a text stops the schedule, when it is built or in a step; None when that is open."""
    if parameter.name in OPEN or parameter.type == ("boolean",) or is_compared_alone(facts, parameter.name):
        return False
    if parameter.enum:
        return text not in parameter.enum
    return is_used(context, facts, parameter)
