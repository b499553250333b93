"""DS733: a list of rates or momenta that fits no number of parameter groups."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import has_one_group, is_used, schedule
from dsmigrate.rules.typed import misfit, parameters


@rule(
    "DS733",
    "values-per-group",
    summary="A list of rates or momenta with no value, or with another length than the list before it.",
    why="A schedule takes one number for all parameter groups of the optimizer, or a list with one for each. An empty "
    "list fits no optimizer, and two lists of different lengths fit none together: the engine stops with "
    "`ValueError: expected 1 value for cycle_min_lr, got 0`. ZeRO builds torch's Adagrad anew and with a single "
    "group, so that there a list has one value.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/lr_schedules.py:_format_param",
        "deepspeed/runtime/zero/stage_1_and_2.py:initialize_optimizer_states",
    ),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": «[]»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": [1e-5, 1e-6], '
            '"cycle_max_lr": «[1e-4, 1e-5, 1e-3]»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_min_mom": «[]»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": «[0, 0.1]»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": [1e-5, 1e-6], '
            '"cycle_max_lr": [1e-4, 1e-5]}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}, '
            '"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-4, '
            '"cycle_min_mom": []}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_momentum": false, "cycle_min_mom": []}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each empty list, and for each whose length is another than that of the first one."""
    facts = schedule(context)
    if facts is None:
        return
    first: tuple[Entry, int] | None = None
    for entry in parameters(context, "scheduler"):
        values = entry.node.value() if entry.node is not None else None
        parameter = facts.parameters.get(entry.name)
        if parameter is None or not isinstance(values, list) or not {"array", "number"} <= set(parameter.type):
            continue
        used = is_used(context, facts, parameter)
        if used is False or misfit(parameter, values) is not None:
            continue
        severity, unless = (Severity.WARNING, say(" unless the optimizer has no betas")) if used is None else (None, "")
        if not values:
            title = say("Remove {path} and take its default", path=shown(entry.path))
            yield context.finding(
                entry,
                say(
                    "{name} of `{facts_name}` is a number, or a list of one for each parameter group, and this list "
                    "is empty: the engine cannot build the schedule{unless}",
                    name=shown(entry.name),
                    facts_name=facts.name,
                    unless=unless,
                ),
                severity=severity,
                fixes=[] if parameter.required else [context.remove(entry, title, safe=False)],
            )
        elif len(values) > 1 and has_one_group(context):
            yield context.finding(
                entry,
                say(
                    "{values} values at {name}, but ZeRO makes one parameter group of all for Adagrad: the engine "
                    "cannot build the schedule",
                    values=len(values),
                    name=shown(entry.name),
                ),
            )
        elif first is None:
            first = entry, len(values)
        elif len(values) != first[1]:
            yield context.finding(
                entry,
                say(
                    "{name} has {values} values and {first_name} has {first}, where both need one for each parameter "
                    "group: the engine cannot build the schedule{unless}",
                    name=shown(entry.name),
                    values=len(values),
                    first_name=shown(first[0].name),
                    first=first[1],
                    unless=unless,
                ),
                severity=severity,
                related=[(first[0], say("the other list"))],
            )
