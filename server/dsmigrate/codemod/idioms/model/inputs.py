"""Inputs: DDP with device_ids moved them to its device, the engine takes them where they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dsmigrate.codemod.analysis.analysis import library_name, loops_around
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Tensor, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Replace
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG108",
        "Inputs are no longer moved to the device",
        "DDP with device_ids copied the inputs of forward to its device; the engine takes them where they are.",
        "A batch that is never moved by the script would meet a model on another device.",
        "torch/nn/parallel/distributed.py, _to_kwargs",
        Kind.TODO,
    ),
)
_MAKERS = frozenset(
    f"torch.{name}" for name in ("rand", "randn", "randint", "ones", "zeros", "full", "arange", "tensor", "empty")
)


def inputs(training: Training, facts: Facts) -> Iterator[Decision]:
    """Move inputs that are made in the call; mark a training forward whose loop moves nothing."""
    if not any(one != NONE for event in training.wraps for one in each(event.what.get("arg_device_ids", NONE))):
        return
    places = {event.node: event for event in training.events(Happening.FORWARD) if training.is_wrapped(event["model"])}
    marked = False
    for node, event in places.items():
        if not isinstance(node, ast.Call) or training.is_before(event):
            continue
        made = [arg for arg in node.args if _is_made(event, arg)]
        engine = facts.engine(event)
        if made and engine is not None:
            edits: tuple[Edit, ...] = tuple(Replace(event.module, arg, (arg, f".to({engine}.device)")) for arg in made)
            yield Decision(
                "MG108",
                Kind.CONVERTED,
                event.module,
                node,
                "inputs are moved to the engine's device",
                "DDP moved them",
                edits=edits,
            )
        elif not marked and not made and (node.args or node.keywords) and not _is_moved(event):
            marked = True
            yield Decision(
                "MG108", Kind.TODO, event.module, node, told("move the inputs to {what}.device: DDP did, the engine does not", what=engine or "engine"),
                "nothing in this loop moves them",
            )  # fmt: skip


def _is_made(event: Event, arg: ast.expr) -> bool:
    """``torch.randn(20, 10)`` without a device."""
    if not isinstance(arg, ast.Call) or any(keyword.arg == "device" for keyword in arg.keywords):
        return False
    return library_name(arg.func, event.names) in _MAKERS


def _is_moved(event: Event) -> bool:
    """Whether the inputs may be where the model is: outside of loops, or where one in the loops around is moved.

    What is of a loader's batch is not, as long as no part of it is moved there; what else is moved may be any of it.
    """
    loops = loops_around(event)
    if not loops:
        return True
    moved = [
        getattr(one, "batch", None)
        for inner in loops[-1].events()
        if inner.kind is Happening.MOVED
        for one in each(inner["of"])
    ]
    return bool(moved) and not any(
        all(
            isinstance(one, Tensor) and one.batch is not None and not any(_overlap(one.batch, other) for other in moved)
            for one in each(given)
        )
        for given in event["inputs"].items  # type: ignore[union-attr]
    )


def _overlap(part: tuple[Any, ...], other: tuple[Any, ...] | None) -> bool:
    """Whether one part of a batch may hold the other; None: of what it is a part is not known."""
    return other is None or all(mine == its for mine, its in zip(part, other, strict=False))
