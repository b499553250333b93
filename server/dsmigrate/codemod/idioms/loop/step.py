"""``optimizer.step()`` becomes ``engine.step()``, and zeroed gradients go with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Remove, Replace

IDEAS = (
    Idea(
        "MG402",
        "optimizer.step() becomes engine.step()",
        "The engine clips, steps the optimizer and zeroes the gradients.",
        "A step of the optimizer alone goes past clipping and, at ZeRO 1-3, past the averaged gradients.",
        "deepspeed/runtime/engine.py, step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG403",
        "zero_grad goes",
        "engine.step() zeroes the gradients itself.",
        "What is left of gradients behind a step is gone; a second zeroing does nothing.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG408",
        "zero_grad that throws gradients away",
        "A zero_grad behind a backward that no step followed drops what has been accumulated; it becomes drop_gradients(engine).",
        "At ZeRO 1 and 2 gradients are kept outside of p.grad, where zero_grad of the script's optimizer does not reach.",
        "deepspeed/runtime/zero/stage_1_and_2.py, zero_grad",
        Kind.CONVERTED,
    ),
    Idea(
        "MG407",
        "The script does not zero its gradients at every step",
        "engine.step() zeroes them after every step; under DDP they kept adding up.",
        "Whether that is meant is for a person to say.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
)


def step(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that steps the optimizer."""
    seen: set[ast.AST] = set()
    for event in training.steps:
        node = event.node
        if node in seen or not isinstance(node, ast.Call) or "library" in event.what:
            continue
        seen.add(node)
        engine = facts.engine(event)
        if engine is None:
            continue
        yield Decision(
            "MG402", Kind.CONVERTED, event.module, node, f"{event.module.text(node)} → {engine}.step()",
            "the engine clips, steps and zeroes",
            edits=(Replace(event.module, node, (f"{engine}.step()",)),),
        )  # fmt: skip
    if facts.gradients.are_kept(training):
        event = training.steps[0]
        yield Decision(
            "MG407", Kind.TODO, event.module, event.node,
            "gradients are not zeroed at every step here; engine.step() zeroes them",
            "under DDP they kept adding up",
        )  # fmt: skip


def zero_grad(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that zeroes the gradients of the model."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.ZERO_GRAD):
        of = event["of"]
        if training.is_optimizer(of) or training.is_wrapper(of) or any(one in training.models for one in (of,)):
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        statement = event.module.step(node).node
        if any(facts.gradients.thrown_away(one) for one in events):
            engine = facts.engine(event)
            if engine is not None and is_statement(event):
                yield Decision(
                    "MG408", Kind.CONVERTED, event.module, node, f"{event.module.text(statement)} → ds_compat.drop_gradients({engine})",
                    "gradients that no step has used are kept by the engine",
                    edits=(Replace(event.module, node, (f"ds_compat.drop_gradients({engine})",)),),
                    parts=frozenset({"drop_gradients"}),
                )  # fmt: skip
            continue
        if is_statement(event) or isinstance(statement, ast.Assign):
            yield Decision(
                "MG403", Kind.CONVERTED, event.module, statement, f"{event.module.text(statement)} removed",
                "engine.step() zeroes the gradients",
                edits=(Remove(event.module, statement),),
            )  # fmt: skip


