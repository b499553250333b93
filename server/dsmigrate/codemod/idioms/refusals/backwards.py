"""Backward passes and steps that an engine cannot run: over a shared graph, of gradients, from given gradients, by a closure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import nearest_common
from dsmigrate.codemod.analysis.conditions import FALSE, both
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    UNBOUND,
    Obj,
    Tensor,
    Value,
    each,
    forwards_in,
)
from dsmigrate.codemod.analysis.values import Kind as ObjKind
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind

IDEAS = (
    Idea(
        "MG905",
        "Backwards over a shared graph",
        "Several backward passes per step keep the graph alive (retain_graph=True), or build a graph of gradients "
        "(create_graph=True), or start from given gradients, or for given inputs.",
        "The engine reduces gradients while backward runs; a second pass over the same graph is not supported at every "
        "ZeRO stage, and gradients of gradients are not there at all.",
        "deepspeed/runtime/engine.py, backward",
        Kind.REFUSED,
    ),
    Idea(
        "MG906",
        "An optimizer step with a closure",
        "optimizer.step(closure) evaluates the model inside the optimizer; the engine's step takes no closure.",
        "LBFGS and similar optimizers evaluate the loss several times per step.",
        "deepspeed/runtime/engine.py, step",
        Kind.REFUSED,
    ),
)


def backwards(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Refuse the forms of backward that the engine has not."""
    for event in training.backwards:
        if event.what.get("create_graph") == TRUE_VALUE:
            yield _refused(event, "backward(create_graph=True) builds a graph of gradients", "engine.backward cannot")
        elif event.what.get("inputs", NONE) != NONE:
            yield _refused(event, "backward is run for given inputs", "engine.backward cannot")
        elif isinstance(event.node, ast.Call) and any(isinstance(one, ast.Starred) for one in event.node.args):
            yield _refused(
                event, "backward is given arguments that are not seen", "engine.backward takes the loss alone"
            )
        elif any(not isinstance(one, Tensor) and one != NONE for one in each(event.what.get("gradient", NONE))):
            yield _refused(event, "backward starts from given gradients", "engine.backward cannot")
    for event in training.events(Happening.GRADIENT):
        trained = any(training.is_model(forward.model) for forward in forwards_in(event["outputs"]))
        if trained and event.what.get("create_graph", TRUE_VALUE) not in {FALSE_VALUE, NONE}:
            yield _refused(
                event, "gradients of gradients are taken (create_graph=True)", "the engine's hooks do not support it"
            )
    yield from _shared(training)


def _shared(training: Training) -> Iterator[Decision]:
    """Two backward passes of one turn whose losses come from the same forward, the first of which keeps the graph."""
    keeping = [
        event for event in training.backwards if event.what.get("retain_graph", FALSE_VALUE) not in {FALSE_VALUE, NONE}
    ]
    for event in keeping:
        own = {forward for forward in forwards_in(event["loss"]) if training.is_model(forward.model)}
        for other in training.backwards:
            again = other is event and any(block.kind is BlockKind.LOOP for block in _below_forward(event, training))
            if (
                (other is not event or again)
                and own & forwards_in(other["loss"])
                and both(event.condition, other.condition) is not FALSE
            ):
                yield _refused(
                    event,
                    "several backward passes run over one graph (retain_graph=True)",
                    "the engine reduces gradients while backward runs",
                )
                return


def _below_forward(event: Event, training: Training) -> list[Block]:
    """The blocks between a backward and what it has in common with the forwards that it comes from."""
    nodes = {forward.node for forward in forwards_in(event["loss"])}
    forwards = [one for one in training.events(Happening.FORWARD) if one.node in nodes and one.number < event.number]
    if not forwards:
        return []
    common = nearest_common([event, forwards[-1]])
    found: list[Block] = []
    for block in event.block.around():
        if block is common:
            break
        found.append(block)
    return found


def _refused(event: Event, message: str, reason: str) -> Decision:
    return Decision("MG905", Kind.REFUSED, event.module, event.node, message, reason)


def closures(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Refuse a step that runs the model again by itself."""
    for event in training.steps:
        if event.what.get("closure", NONE) not in {NONE, UNBOUND} or any(
            _is_lbfgs(one) for one in each(event["optimizer"])
        ):
            yield Decision(
                "MG906", Kind.REFUSED, event.module, event.node, "optimizer.step takes a closure here", "the engine's step evaluates no closure",
            )  # fmt: skip
            return


def steps(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Refuse a training whose optimizer is stepped where it cannot be seen: by a scaler through an object around it, by unread code."""
    for event in training.events(Happening.STEP):
        around = [
            one for one in each(event["optimizer"]) if isinstance(one, Obj) and role_of(one) is not Role.OPTIMIZER
        ]
        if "scaler" in event.what and any(one.kind is ObjKind.INSTANCE for one in around):
            yield Decision(
                "MG913", Kind.REFUSED, event.module, event.node, "scaler.step runs the step of an object that holds the optimizer",
                "what that step does besides cannot be kept; step its optimizer",
            )  # fmt: skip
            return
    if training.steps or not training.optimizers:
        return
    event = next(
        (
            one
            for one in training.events(Happening.OPAQUE)
            if any(training.is_optimizer(value) for value in one.what.values())
        ),
        training.backwards[0],
    )
    yield Decision(
        "MG910",
        Kind.REFUSED,
        event.module,
        event.node,
        "no step of the optimizer is seen",
        "half a conversion would not train",
    )


def _is_lbfgs(one: Value) -> bool:
    return isinstance(one, Obj) and one.made_by == "torch.optim.LBFGS"
