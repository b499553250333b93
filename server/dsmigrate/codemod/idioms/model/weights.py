"""Weights that the script writes itself behind the engine: the optimizer's own copies have to learn of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import implies
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, Tensor, each, forwards_in
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.teaching import taught
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert
from dsmigrate.codemod.program.module import Module, Step
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG509",
        "Weights are written after the engine is made",
        "Masks, clamps, weight clipping and averages that are put back reach the optimizer's fp32 copies by refresh_masters.",
        "At ZeRO 1-3 the optimizer steps copies of the weights; an edit in place alone is undone by the next step.",
        "engine-semantics 12; deepspeed/utils/tensor_fragment.py",
        Kind.CONVERTED,
    ),
)
_TRAINS = (Happening.STEP, Happening.FORWARD, Happening.BACKWARD, Happening.SAVE)


def writes(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that writes weights of the model."""
    places: dict[tuple[Module, ast.stmt], tuple[Event, str | None]] = {}
    frozen: set[ast.AST] = set()
    hooks = {event.node for event in training.events(Happening.HOOK) if training.is_model(event["of"])}
    for event in training.events(Happening.WEIGHT_WRITE, Happening.OPAQUE):
        if not _is_ours(training, event):
            continue
        if event.kind is Happening.WEIGHT_WRITE and _is_frozen(training, event):
            if not training.is_before(event) and event.node not in frozen:
                frozen.add(event.node)
                yield Decision(
                    "MG509", Kind.KEPT, event.module, event.node, "these weights are frozen: the optimizer has no copy of them", "they are whole below ZeRO 3",
                    stage=2, otherwise=_partitioned(event),
                )  # fmt: skip
            continue
        if any(block.kind is BlockKind.CALL and block.node in hooks for block in event.block.around()):
            for forward in _trained(training):  # where the hook runs
                module, node, engine = _place(training, facts, forward)
                places.setdefault((module, node), (event, engine))
            continue
        if training.is_before(event):
            continue
        module, node, engine = _place(training, facts, event)
        places.setdefault((module, node), (event, engine))
    for (module, node), (event, engine) in places.items():
        if engine is None:
            yield Decision(
                "MG509", Kind.TODO, event.module, event.node, "call ds_compat.refresh_masters(engine) once these weights are written",
                "the next step overwrites them at ZeRO 1-3", least=facts.least_apart,
            )  # fmt: skip
            continue
        line = f"ds_compat.refresh_masters({engine})"
        yield from taught(training, facts)
        yield Decision(
            "MG509", Kind.CONVERTED, event.module, event.node, told("{line} after it", line=line), "the optimizer's copies learn of the new weights",
            edits=(Insert(module, node, ((line,),), after=True),), parts=frozenset({"refresh_masters"}), stage=2, least=facts.least_apart,
            otherwise=_partitioned(event),
        )  # fmt: skip


def _partitioned(event: Event) -> Decision:
    return Decision(
        "MG509", Kind.TODO, event.module, event.node, "write these weights under deepspeed.zero.GatheredParameters(…, modifier_rank=0)",
        "they are partitioned at ZeRO 3",
    )  # fmt: skip


def _is_ours(training: Training, event: Event) -> bool:
    """Whether weights of the model are written: in place, or by an unread function that is given it and what a file held."""
    if event.kind is Happening.OPAQUE:
        given = [
            value for name, value in event.what.items() if name.startswith("thing") and not isinstance(value, Tensor)
        ]
        return "read" in event.what and any(map(training.is_model, given))
    of = event["of"]
    owner = getattr(of, "of", None)
    return owner is not None and training.is_model(owner)


def _is_frozen(training: Training, event: Event) -> bool:
    """Whether all parameters of a part were frozen before: the optimizer has no copy of what it does not train."""
    owner = getattr(event["of"], "of", None)
    thaws = [
        one
        for one in training.events(Happening.THAW)
        if one.number < event.number
        and {inner.of if isinstance(inner, Tensor) else inner for inner in each(one["of"])} == {owner}
    ]
    return bool(thaws) and thaws[-1]["value"] == FALSE_VALUE and implies(event.condition, thaws[-1].condition)


def _trained(training: Training) -> list[Event]:
    """The forwards that a backward follows."""
    nodes = {forward.node for event in training.backwards for forward in forwards_in(event["loss"])}
    return [
        event
        for event in training.events(Happening.FORWARD)
        if event.node in nodes and training.is_model(event["model"])
    ]


def _place(training: Training, facts: Facts, event: Event) -> tuple[Module, ast.stmt, str | None]:
    """The statement behind which all of it is written, and the engine's name there: outside of the loop over parameters."""
    module, step = event.module, event.module.step(event.node)
    engine = facts.engine(event)
    if engine is None:
        for block in event.block.around():
            names = (
                training.engine_names(block.names) if block.kind is BlockKind.CALL and block.module is not None else []
            )
            if names and block.node is not None and block.module is not None:
                module, step, engine = block.module, block.module.step(block.node), names[0]
                break
    return module, _outermost(training, step).node, engine


def _outermost(training: Training, step: Step) -> Step:
    """What is around a statement, as long as nothing in it trains or saves."""
    while step.up is not None and isinstance(step.up.node, ast.For | ast.With) and not _trains(training, step.up.node):
        step = step.up
    return step


def _trains(training: Training, node: ast.stmt) -> bool:
    inside = set(ast.walk(node))
    return any(
        event.node in inside or any(block.node in inside for block in event.block.around())
        for event in training.events(*_TRAINS)
    )
