"""DS640: a parameter of the optimizer whose value is of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Parameter, TypeFacts
from dsmigrate.knowledge.wording import json_text
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.optimizer._shared import Build, build_of, optimizer, refusal
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import as_number, as_switch, given, misfit, parameters, written_type

_COMPARED = frozenset({"lr", "betas", "eps", "weight_decay"})
"""What the constructors of torch and of the classes for the CPU look at; the rest fails in a step."""
_UNTIL_THE_SCHEDULE = frozenset({"WarmupDecayLR", "OneCycle", "LRRangeTest", "WarmupLR"})


@rule(
    "DS640",
    "optimizer-parameter-type",
    summary="A parameter of the optimizer whose value is of the wrong type.",
    why="DeepSpeed does not look at the values: the class does. torch's classes and those for the CPU fail when the "
    'engine is built, FusedAdam and FusedLion take a text such as `"1e-4"` and fail with a `TypeError` in the first '
    'step, after the model has been loaded. Switches are not checked at all: every text that is not empty, `"false"` '
    "too, counts as true.",
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
        if wanted is None or refusal(context, facts, parameter, value) is not None:
            continue
        if "boolean" in parameter.type:
            yield _switch(context, entry, parameter, build)
        elif not _is_replaced(context, entry.name, build):
            early = build in {Build.TORCH, Build.CPU} and entry.name in _COMPARED and not facts.takes_anything
            number = as_number(value)
            harmless = _is_never_read(context, facts, entry.name)
            yield context.finding(
                entry,
                f"{shown(entry.name)} of `{facts.name}` is {wanted}, not {json_text(value)}: "
                + ("nothing reads it here" if harmless else _when(early=early)),
                severity=Severity.WARNING if harmless else None,
                effect=Effect.IGNORED if harmless else Effect.REJECTED if early else None,
                fixes=[_number(context, entry, number)] if number is not None and wanted == "a number" else (),
            )


def _when(*, early: bool) -> str:
    return "the engine cannot build the optimizer" if early else "the optimizer fails at its first steps"


def _number(context: Context, entry: Entry, number: float) -> Fix | None:
    return context.replace(entry, number, f"Write the number {json_text(number)}", safe=True)


def _switch(context: Context, entry: Entry, parameter: Parameter, build: Build | None) -> Finding:
    assert entry.node is not None  # noqa: S101 - looked at before
    value = entry.node.value()
    meant = as_switch(value)
    crashes = parameter.name == "differentiable" or (build is Build.CPU and parameter.name == "bias_correction")
    does = "the first step stops with a `TypeError`" if crashes else f"it counts as {json_text(bool(value))}"
    fix = None
    if meant is not None:
        title = f"Write {json_text(meant)} without quotes"
        fix = context.replace(entry, meant, title, safe=crashes or meant is bool(value))
    return context.finding(
        entry,
        f"{shown(entry.name)} is true or false, not {json_text(value)}: {does}",
        severity=Severity.ERROR if crashes else Severity.WARNING,
        effect=Effect.CRASH if crashes else Effect.MISREAD,
        fixes=[fix],
    )


def _is_replaced(context: Context, name: str, build: Build | None) -> bool:
    """Return whether a schedule puts a rate of its own in place of ``lr`` before a step sees it."""
    if name != "lr" or build is not Build.FUSED:
        return False
    schedule = written_type(context, "scheduler")
    return schedule in _UNTIL_THE_SCHEDULE and not (
        schedule == "WarmupLR" and given(context, "scheduler").get("warmup_max_lr") is None
    )


def _is_never_read(context: Context, facts: TypeFacts, name: str) -> bool:
    return name == "dampening" and "momentum" in facts.parameters and not given(context, "optimizer").get("momentum")
