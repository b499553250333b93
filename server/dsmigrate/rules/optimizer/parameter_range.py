"""DS642: a parameter of the optimizer outside of its range."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Array
from dsmigrate.knowledge import Consumer, TypeFacts
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import Build, build_of, optimizer, refusal
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import Whole, is_new, is_number, misfit, outside, parameters, whole

_NOT_NEGATIVE = frozenset(
    {"lr", "muon_lr", "adam_lr", "eps", "weight_decay", "momentum", "lr_decay", "initial_accumulator_value"}
)
_FLOATS_ONLY = frozenset({"Adam", "AdamW", "MuAdam", "MuAdamW"})
_AT_STEP = frozenset({"line_search_fn"})
"""Texts that the class looks at in its steps only."""
_PAIRS = frozenset({"betas", "etas", "step_sizes", "eps"})


@rule(
    "DS642",
    "optimizer-parameter-range",
    summary="A parameter of the optimizer whose value is outside of its range.",
    why="torch's classes check lr, betas, eps and weight decay and stop with a `ValueError` when the engine is built. "
    "DeepSpeed's own classes (FusedAdam, DeepSpeedCPUAdam, FusedLion, Muon) check nothing and train on: a negative "
    "rate climbs, a beta of 1 or more turns the weights into NaN within some steps.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/ops/adam/fused_adam.py:FusedAdam.__init__",
        "deepspeed/ops/adam/cpu_adam.py:DeepSpeedCPUAdam.__init__",
    ),
    keys=("optimizer.params",),
    examples=(
        Example('{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": «-0.1»}}}', accepted=False),
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": «-0.1»}}}'),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": «[0.9, 1.5]»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "RAdam", "params": {"betas": «[0.9]»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"torch_adam": true, "betas": «[0, '
            "0.9]»}}}",
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, '
            '"optimizer": {"type": "Adam", "params": {"torch_adam": true, "betas": «[0, 0.9]»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}, '
            '"optimizer": {"type": "Adam", "params": {"torch_adam": true, "betas": [0.0, 0.9]}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"ns_method": «"newton"»}}}',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adafactor", "params": {"beta2_decay": -0.5}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "RAdam", "params": {"betas": [0, 0.9]}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value of the right type that is out of range, and for pairs that are no pairs."""
    facts = optimizer(context)
    if facts is None:
        return
    for entry in parameters(context, "optimizer"):
        parameter = facts.parameters.get(entry.name)
        value = None if entry.node is None else entry.node.value()
        if parameter is None or is_new(parameter.since, context):
            continue
        if misfit(parameter, value) or refusal(context, facts, parameter, value):
            continue
        if parameter.enum and isinstance(value, str) and value != "auto" and value not in parameter.enum:
            allowed = say(" or ").join(json_text(name) for name in parameter.enum)
            later = entry.name in _AT_STEP
            yield context.finding(
                entry,
                say(
                    "{name} of `{facts_name}` is {allowed}, not {value}: ",
                    name=shown(entry.name),
                    facts_name=facts.name,
                    allowed=allowed,
                    value=json_text(value),
                )
                + (
                    say("the optimizer fails in its first step")
                    if later
                    else say("the engine cannot build the optimizer")
                ),
                effect=Effect.CRASH if later else None,
            )
        elif isinstance(value, list) and entry.name in _PAIRS:
            yield from _pair(context, facts, entry, value)
        elif is_number(value):
            yield from _number(context, facts, entry, outside(parameter, value) or _negative(facts, entry.name, value))


def _negative(facts: TypeFacts, name: str, value: object) -> str | None:
    checked = name in _NOT_NEGATIVE or (name == "alpha" and facts.name == "RMSprop")
    return say("at least 0") if checked and isinstance(value, (int, float)) and value < 0 else None


def _number(context: Context, facts: TypeFacts, entry: Entry, allowed: str | None) -> Iterator[Finding]:
    if allowed is None or entry.node is None:
        return
    refuses = build_of(context, facts) is Build.TORCH and not facts.takes_anything
    yield context.finding(
        entry,
        say(
            "{name} of `{facts_name}` must be {allowed}, not {value}: ",
            name=shown(entry.name),
            facts_name=facts.name,
            allowed=allowed,
            value=json_text(entry.node.value()),
        )
        + (
            say("the engine cannot build the optimizer")
            if refuses
            else say("the class does not check it and trains on")
        ),
        severity=None if refuses else Severity.WARNING,
        effect=None if refuses else Effect.RISKY,
    )


def _pair(context: Context, facts: TypeFacts, entry: Entry, value: list[object]) -> Iterator[Finding]:
    build = build_of(context, facts)
    refuses = build is Build.TORCH and not facts.takes_anything
    if len(value) != 2:
        early = len(value) < 2 and build in {Build.TORCH, Build.CPU} and entry.name != "step_sizes"
        yield context.finding(
            entry,
            say(
                "{name} of `{facts_name}` is a list of two numbers, not of {value}: ",
                name=shown(entry.name),
                facts_name=facts.name,
                value=len(value),
            )
            + (say("the engine cannot build the optimizer") if early else say("the optimizer fails in its first step")),
            effect=Effect.REJECTED if early and not facts.takes_anything else Effect.CRASH,
        )
        return
    numbers = [number for number in value if isinstance(number, (int, float))]
    allowed = _broken(entry.name, numbers)
    if allowed is not None:
        yield context.finding(
            entry,
            say(
                "{name} must be {allowed}, not {value}: ",
                name=shown(entry.name),
                allowed=allowed,
                value=json_text(value),
            )
            + (
                say("the engine cannot build the optimizer")
                if refuses
                else say("the class does not check it and trains on")
            ),
            severity=None if refuses else Severity.WARNING,
            effect=None if refuses else Effect.RISKY,
        )
    elif entry.name == "betas" and refuses and facts.name in _FLOATS_ONLY and isinstance(entry.node, Array):
        yield from _floats(context, entry, entry.node)


def _floats(context: Context, entry: Entry, node: Array) -> Iterator[Finding]:
    """Yield a finding for a 0 that torch wants as a float, which DeepSpeed's loader cannot give from a file."""
    kinds = [whole(context, item) for item in node]
    if all(kind is Whole.FLOAT for kind in kinds):
        return
    strict = context.consumer.reads_strict_json
    floats = [float(number) for number in node.value() if isinstance(number, (int, float))]
    advice = (
        say("write {floats}", floats=json_text(floats))
        if strict
        else say("DeepSpeed's loader makes 0 of 0.0, so write 1e-9")
    )
    yield context.finding(
        entry,
        say(
            "torch's Adam takes two floats as `betas`, not {value}: the engine cannot build the optimizer; {advice}",
            value=json_text(node.value()),
            advice=advice,
        ),
        effect=None if Whole.INT in kinds else Effect.CRASH,
        fixes=[context.replace(entry, floats, say("Write {floats}", floats=json_text(floats)), safe=True)]
        if strict
        else (),
    )


def _broken(name: str, pair: list[int | float]) -> str | None:
    """Return what a pair must be when it is not."""
    if name == "betas" and any(not 0 <= number < 1 for number in pair):
        return say("two numbers of at least 0 and below 1")
    if name == "eps" and any(number < 0 for number in pair):
        return say("two numbers of at least 0")
    if name == "etas" and not 0 < pair[0] < 1 < pair[1]:
        return say("a number between 0 and 1 and one above 1")
    return None
