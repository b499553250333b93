"""Literals, and what a name is bound to."""

from __future__ import annotations

from typing import Any

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node

BUILTINS = frozenset({"int", "float", "bool", "max", "min", "str", "len", "abs", "round", "True", "False", "None"})


UNKNOWN = object()


def literal_value(node: Node) -> Any:
    """The value of a literal; ``UNKNOWN`` for anything else."""
    value = number(node)
    if value is not None:
        return value
    if isinstance(node, cst.Name) and node.value in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[node.value]
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value
    if isinstance(node, cst.Tuple | cst.List) and node.elements:
        values = [literal_value(element.value) for element in node.elements]
        return UNKNOWN if any(value is UNKNOWN for value in values) else values
    return UNKNOWN


def bound_values(plan: Plan, node: Node, function: Function) -> list[tuple[Node, Function]]:
    """The expressions that a name is bound to, with their functions."""
    place = plan.flow.place(node, function)
    return [(b.value, b.function) for b in plan.flow.by_place.get(place, ()) if b.index is None] if place else []


def is_rebound(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a name gets its value in more than one way (several bindings, augmented assignment, loop, parameter)."""
    place = plan.flow.place(node, function)
    if place is None or len(plan.flow.by_place.get(place, ())) != 1:
        return True
    for statement in plan.tree.statements:
        if (
            isinstance(statement.node, cst.AugAssign)
            and plan.flow.place(statement.node.target, statement.function) == place
        ):
            return True
    # `exec` and `globals()` may change any module-level name (nanoGPT's configurator).
    if any(place[1] == id(part.top) for part in plan.tree.parts):
        return any(dotted(call.func) in ("exec", "globals") for call in plan.tree.calls)
    return False
