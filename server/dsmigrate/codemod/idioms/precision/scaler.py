"""The script's gradient scaler keeps its scale and schedule; the engine asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, Const, Obj, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Remove, Replace

IDEAS = (
    Idea(
        "MG302",
        "The gradient scaler drives the engine",
        "The script's scaler keeps its scale, schedule and state; use_grad_scaler makes the engine scale and skip by it.",
        "DeepSpeed's own scale under torch_autocast does not follow the script's, and never falls at ZeRO 1-3 (0.19.8).",
        "deepspeed/runtime/engine.py, torch_autocast_z0_gradscaler",
        Kind.CONVERTED,
    ),
    Idea(
        "MG425",
        "unscale_ goes",
        "The engine unscales the gradients before it clips them.",
        "A second unscaling would divide them again.",
        "torch/amp/grad_scaler.py, unscale_",
        Kind.CONVERTED,
    ),
)


def scaler(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the scaler of the training."""
    scalers = _scalers(training)
    if not scalers:
        return
    for event in _one_each(training, Happening.SCALE, scalers):
        node = event.node
        if isinstance(node, ast.Call) and node.args:
            yield Decision(
                "MG302", Kind.CONVERTED, event.module, node, f"{event.module.text(node)} → {event.module.text(node.args[0])}",
                "the engine scales the loss", edits=(Replace(event.module, node, (node.args[0],)),),
            )  # fmt: skip
    for event in _one_each(training, Happening.UNSCALE, scalers):
        if is_statement(event):
            yield Decision(
                "MG425", Kind.CONVERTED, event.module, event.node, f"{event.module.text(_expression(event))} removed",
                "the engine unscales before it clips", edits=(Remove(event.module, event.module.step(event.node).node),),
            )  # fmt: skip
    yield from _taught(training, facts, scalers)


def _scalers(training: Training) -> set[Value]:
    """The scalers that a loss or a step of the training goes through."""
    found: set[Value] = set()
    for event in training.steps:
        found.update(one for one in each(event.what.get("scaler", Const(None))) if isinstance(one, Obj))
    return found


def _one_each(training: Training, kind: Happening, scalers: set[Value]) -> list[Event]:
    events = [event for event in training.events(kind) if any(one in scalers for one in each(event["scaler"])) and "library" not in event.what]
    return list({event.node: event for event in reversed(events)}.values())[::-1]


def _expression(event: Event) -> ast.expr:
    assert isinstance(event.node, ast.expr)
    return event.node


def _taught(training: Training, facts: Facts, scalers: set[Value]) -> Iterator[Decision]:
    """The line that lets the engine ask the scaler, behind both."""
    made = [event for event in training.events(Happening.MADE) if any(one in scalers for one in each(event["what"]))]
    if made and all(event.what.get("enabled") == FALSE_VALUE for event in made):
        return
    parts = frozenset({"use_grad_scaler"})
    place = training.place_with(scalers)
    if place is not None:
        moment, engine, name = place
        line = f"ds_compat.use_grad_scaler({engine}, {name})"
        yield Decision(
            "MG302", Kind.CONVERTED, moment.module, moment.node, line, "the scaler keeps its scale and schedule",
            edits=(Insert(moment.module, moment.node, ((line,),), after=True, rank=2),), parts=parts, lines=(0, 0),
        )  # fmt: skip
        return
    event = made[0] if made else training.steps[0]
    yield Decision(
        "MG302", Kind.TODO, event.module, event.node, "call use_grad_scaler(engine, scaler) where both are there", "no name leads to both",
        parts=parts,
    )  # fmt: skip
