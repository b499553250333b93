"""Which values are each rank's own: the loss that backward runs on, and what is computed from it and never reduced."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.loop import loss_of
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Node, descendants

_COLLECTIVE = re.compile(r"reduce|gather|broadcast|sync|distributed|across|all_\w*mean|world", re.IGNORECASE)
_FUNCTIONS = frozenset({"float", "abs", "bool", "isnan", "isinf", "isfinite", "any", "all"})
_METHODS = _FUNCTIONS | {"item", "detach", "cpu", "mean", "sum", "clone"}
_DEPTH = 6


def is_own(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether an expression is, or is computed from, the loss of this rank alone."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        return _is_own_place(plan, node, function, depth)
    if isinstance(node, cst.Call):
        return _is_own_call(plan, node, function, depth)
    parts: list[Node] = []
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        parts = [node.left, node.right]
    elif isinstance(node, cst.UnaryOperation):
        parts = [node.expression]
    elif isinstance(node, cst.Comparison):
        none = [one for one in node.comparisons if dotted(one.comparator) == "None"]
        parts = [] if none else [node.left, *(one.comparator for one in node.comparisons)]
    return any(is_own(plan, part, function, depth - 1) for part in parts)


def _is_own_call(plan: Plan, call: cst.Call, function: Function, depth: int) -> bool:
    func = call.func
    if (
        isinstance(func, cst.Attribute)
        and func.attr.value in _METHODS
        and is_own(plan, func.value, function, depth - 1)
    ):
        return True
    last = (dotted(func) or "").rpartition(".")[2]
    return last in _FUNCTIONS and any(is_own(plan, arg.value, function, depth - 1) for arg in call.args)


def _is_own_place(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    place = plan.flow.place(node, function)
    if place is None or place in _reduced(plan):
        return False
    if place in _losses(plan):
        return True
    values = [b.value for b in plan.flow.by_place.get(place, ()) if b.kind == "assign" and b.index is None]
    values += added(plan).get(place, [])
    return any(is_own(plan, value, function, depth - 1) for value in values)


def _losses(plan: Plan) -> set[Place]:
    """The variables that backward runs on."""
    found: set[Place] | None = plan.facts.get("places_of_losses")
    if found is None:
        places = [plan.place_of(loss_of(plan, call)) for call in find_backward(plan)]
        found = plan.facts["places_of_losses"] = {place for place in places if place is not None and place[0] == "v"}
    return found


def added(plan: Plan) -> dict[Place, list[Node]]:
    """What ``total += …`` adds to a variable."""
    found: dict[Place, list[Node]] | None = plan.facts.get("added_values")
    if found is None:
        found = plan.facts["added_values"] = {}
        for statement in plan.tree.statements:
            node = statement.node
            place = plan.flow.place(node.target, statement.function) if isinstance(node, cst.AugAssign) else None
            if place is not None:
                found.setdefault(place, []).append(node.value)  # type: ignore[attr-defined]
    return found


def _reduced(plan: Plan) -> set[Place]:
    """What is handed to a function that makes it the same on all ranks, by its name, and what comes out of one."""
    found: set[Place] | None = plan.facts.get("reduced_places")
    if found is None:
        found = plan.facts["reduced_places"] = set()
        for call in plan.tree.calls:
            if _COLLECTIVE.search(dotted(call.func) or ""):
                for sub in descendants(call):
                    if isinstance(sub, cst.Name | cst.Attribute) and (place := plan.place_of(sub)) is not None:
                        found.add(place)
    return found
