"""DS730: a parameter of the schedule whose value is of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Parameter
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import OPEN, WHOLE, is_compared_alone, is_used, schedule
from dsmigrate.rules.typed import as_number, as_switch, before, misfit, parameters

_EARLY = frozenset({"warmup_min_lr", "warmup_max_lr", "total_num_steps"})
"""What the constructors calculate with at once; the rest fails there or at a later step."""
_CONVERTED = frozenset({"cycle_first_step_size", "cycle_second_step_size", "step_size_up", "step_size_down"})
"""What the constructors make a float of themselves."""
_NULL = frozenset({"warmup_max_lr"})
"""Where null stands for the learning rate of the optimizer."""
_NULL_SINCE = "0.17.2"


@rule(
    "DS730",
    "scheduler-parameter-type",
    summary="A parameter of the schedule whose value is of the wrong type.",
    why="DeepSpeed does not look at most values. The schedule calculates with them when the engine is built or when a "
    "step first needs them, and a text or null ends in a `TypeError` there, sometimes only after the warm-up. Switches "
    'are not checked: every text that is not empty, `"false"` too, counts as true.',
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR", "deepspeed/runtime/lr_schedules.py:OneCycle"),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": «"3e-5"»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 3e-05}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_momentum": «"false"»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_momentum": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": «null»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", '
            '"params": {"total_num_steps": 5e3, "warmup_max_lr": null}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value that the schedule cannot use."""
    facts = schedule(context)
    if facts is None:
        return
    for entry in parameters(context, "scheduler"):
        parameter = facts.parameters.get(entry.name)
        if parameter is None or entry.node is None or entry.name in WHOLE | OPEN | {"last_epoch"}:
            continue
        value = entry.node.value()
        wanted = misfit(parameter, value)
        if value is None and entry.name in _NULL and not before(context, _NULL_SINCE):
            continue
        if wanted is None or (parameter.enum and isinstance(value, str)):
            continue
        if parameter.type == ("boolean",):
            yield _switch(context, entry, parameter, value)
            continue
        number, used = as_number(value), is_used(context, facts, parameter)
        if used is False or (number is not None and entry.name in _CONVERTED):
            continue
        matched = is_compared_alone(facts, entry.name) and (
            parameter.type != ("array",) or value is None or isinstance(value, (list, str, dict))
        )
        yield context.finding(
            entry,
            say(
                "{name} of `{facts_name}` is {wanted}, not {value}: ",
                name=shown(entry.name),
                facts_name=facts.name,
                wanted=wanted,
                value=json_text(value),
            )
            + (say("it matches no step") if matched else _when(entry.name)),
            severity=Severity.WARNING if matched or used is None else None,
            effect=Effect.IGNORED if matched else Effect.REJECTED if entry.name in _EARLY else None,
            fixes=[
                context.replace(entry, number, say("Write the number {number}", number=json_text(number)), safe=True)
            ]
            if number is not None
            else (),
        )


def _when(name: str) -> str:
    return (
        say("the engine cannot build the schedule")
        if name in _EARLY
        else say("the schedule fails as soon as it needs it")
    )


def _switch(context: Context, entry: Entry, parameter: Parameter, value: object) -> Finding:
    meant = as_switch(value)
    return context.finding(
        entry,
        say(
            "{parameter_name} is true or false, not {value}: it counts as {bool}",
            parameter_name=shown(parameter.name),
            value=json_text(value),
            bool=json_text(bool(value)),
        ),
        severity=Severity.WARNING,
        effect=Effect.MISREAD,
        fixes=[
            context.replace(
                entry, meant, say("Write {meant} without quotes", meant=json_text(meant)), safe=meant is bool(value)
            )
        ]
        if meant is not None
        else (),
    )
