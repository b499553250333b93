"""DS640: a parameter of the optimizer whose value is of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.optimizer._shared import (
    Build,
    adds_decay,
    build_of,
    is_read,
    optimizer,
    refusal,
    switch_stops,
)
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import as_number, as_switch, misfit, outside, parameters

_COMPARED = frozenset({"lr", "betas", "eps", "weight_decay"})
"""What the constructors of torch and of the classes for the CPU look at; the rest fails in a step."""


@rule(
    "DS640",
    "optimizer-parameter-type",
    summary="A parameter of the optimizer whose value is of the wrong type.",
    why="DeepSpeed does not look at the values: the class does. torch's classes and those for the CPU fail when the "
    'engine is built, FusedAdam and FusedLion take a text such as `"1e-4"` and fail with a `TypeError` in the first '
    'step, after the model has been loaded. Switches are not checked at all: every text that is not empty, `"false"` '
    "too, counts as true. True where a number belongs counts as 1, but on the CPU torch cannot add a decay of true.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/ops/adam/fused_adam.py:FusedAdam.step",
        "deepspeed/ops/adam/cpu_adam.py:DeepSpeedCPUAdam.__init__",
    ),
    keys=("optimizer.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": «"1e-4"»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": «null»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "RAdam", "params": {"lr": 0.1, "betas": «0.9»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"adam_w_mode": «"false"»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": «true»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 1}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1, "weight_decay": «true»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1, "weight_decay": 1}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1, "nesterov": 0}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each parameter that the class takes and whose value it cannot use."""
    facts = optimizer(context)
    if facts is None:
        return
    build = build_of(context, facts)
    for entry in parameters(context, "optimizer"):
        parameter = facts.parameters.get(entry.name)
        if parameter is None or entry.node is None:
            continue
        value = entry.node.value()
        wanted = misfit(parameter, value)
        if refusal(context, facts, parameter, value) is not None:
            continue
        if wanted is None:
            if isinstance(value, bool) and "boolean" not in parameter.type and not outside(parameter, value):
                yield _counted(context, entry, stops=value and adds_decay(context, facts, entry.name))
            continue
        if "boolean" in parameter.type:
            yield _switch(context, entry, stops=switch_stops(context, facts, entry.name))
        else:
            early = build in {Build.TORCH, Build.CPU} and entry.name in _COMPARED and not facts.takes_anything
            number = as_number(value)
            harmless = not is_read(context, facts, entry.name)
            yield context.finding(
                entry,
                say(
                    "{name} of `{facts_name}` is {wanted}, not {value}: ",
                    name=shown(entry.name),
                    facts_name=facts.name,
                    wanted=wanted,
                    value=json_text(value),
                )
                + (say("nothing reads it here") if harmless else _when(early=early)),
                severity=Severity.WARNING if harmless else None,
                effect=Effect.IGNORED if harmless else Effect.REJECTED if early else None,
                fixes=[_number(context, entry, number)] if number is not None and wanted == "a number" else (),
            )


def _counted(context: Context, entry: Entry, *, stops: bool) -> Finding:
    """Return the finding for true or false where a number belongs."""
    value = entry.node is not None and bool(entry.node.value())
    return context.finding(
        entry,
        say("{name} is a number, not {value}: ", name=shown(entry.name), value=json_text(value))
        + (
            say("torch cannot add with it on the CPU, where the optimizer is")
            if stops
            else say("it counts as {value}", value=int(value))
        ),
        severity=None if stops else Severity.WARNING,
        effect=None if stops else Effect.MISREAD,
        fixes=[context.replace(entry, int(value), say("Write {value}", value=int(value)), safe=True)],
    )


def _when(*, early: bool) -> str:
    return say("the engine cannot build the optimizer") if early else say("the optimizer fails at its first steps")


def _number(context: Context, entry: Entry, number: float) -> Fix | None:
    return context.replace(entry, number, say("Write the number {number}", number=json_text(number)), safe=True)


def _switch(context: Context, entry: Entry, *, stops: bool) -> Finding:
    assert entry.node is not None  # noqa: S101 - looked at before
    value = entry.node.value()
    meant = as_switch(value)
    does = (
        say("the first step stops with a `TypeError`")
        if stops
        else say("it counts as {bool}", bool=json_text(bool(value)))
    )
    fix = None
    if meant is not None:
        title = say("Write {meant} without quotes", meant=json_text(meant))
        fix = context.replace(entry, meant, title, safe=stops or meant is bool(value))
    return context.finding(
        entry,
        say("{name} is true or false, not {value}: {does}", name=shown(entry.name), value=json_text(value), does=does),
        severity=Severity.ERROR if stops else Severity.WARNING,
        effect=Effect.CRASH if stops else Effect.MISREAD,
        fixes=[fix],
    )
