"""Starts of the script that only evaluate, and have no optimizer for the engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.code import condition_said
from dsmigrate.codemod.analysis.conditions import TRUE, Condition, decided, either, literals_of, negate
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Choice
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG523",
        "A start that only evaluates has no optimizer, or no engine",
        "The optimizer is made under a condition that deepspeed.initialize does not have.",
        "DDP wraps a model without asking for an optimizer. deepspeed.initialize is given one: `--eval-only` stops at a name that is "
        "not set, or at ZeRO 1-3, which require an optimizer.",
        "deepspeed/runtime/engine.py, _configure_distributed_model and _configure_optimizer; run on two processes with 0.19.8",
        Kind.TODO,
    ),
)
_USES = (Happening.FORWARD, Happening.RESTORE, Happening.STATE)


def starts(training: Training, facts: Facts) -> Iterator[Decision]:
    """Mark the engine where a start that uses the model has no optimizer for it."""
    site = facts.site
    made = _made_when(training, facts)
    if made is None:
        return
    without = negate(made)
    said = condition_said(without, site.names)
    if said is not None and any(_runs_without(training, event, made) for event in training.events(*_USES)):
        yield Decision(
            "MG523", Kind.TODO, site.module, site.node, told("no optimizer is made where {said}: evaluate before this line, or make one", said=said),
            "DDP wrapped the model without an optimizer, deepspeed.initialize needs it",
        )  # fmt: skip


def _made_when(training: Training, facts: Facts) -> Condition | None:
    """Under which condition the optimizer is there where the engine is made; None for always, or where that is not known."""
    expression = ast.parse(facts.site.optimizer, mode="eval").body
    if not isinstance(expression, ast.Name):
        return None
    value = next((scope[expression.id] for scope in facts.site.names if expression.id in scope), None)
    if not isinstance(value, Choice):
        return None
    found = either(*(condition for condition, one in value.options if training.is_optimizer(one)))
    return None if found is TRUE else found


def _runs_without(training: Training, event: Event, made: Condition) -> bool:
    """Whether the model is used behind the engine's place where no optimizer was made."""
    of = event["model"] if event.kind is Happening.FORWARD else event["of"]
    if not training.is_model(of) or training.is_before(event):
        return False
    assumed = {literal.atom: literal.holds for literal in literals_of(event.condition)}
    return decided(made, assumed) is False
