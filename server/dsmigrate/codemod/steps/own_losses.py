"""Which values are each rank's own: the loss that backward runs on, and what is computed from it and never reduced.

So is what the model says about a rank's part of the data. Meters, lists and the script's functions carry such values on.
"""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.loop import loss_of
from dsmigrate.codemod.steps.sharded import is_sharded_output
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Node, descendants

_COLLECTIVE = re.compile(r"reduce|gather|broadcast|sync|distributed|across|all_\w*mean|world", re.IGNORECASE)
_FUNCTIONS = frozenset({
    "float", "abs", "bool", "isnan", "isinf", "isfinite", "any", "all", "sum", "mean", "average", "nanmean", "max", "min", "round",
})  # fmt: skip
_METHODS = _FUNCTIONS | {"item", "detach", "cpu", "mean", "sum", "clone"}
_FILLS = frozenset({"append", "update", "add", "extend"})
_MEANS = frozenset({"avg", "average", "mean", "value", "val", "sum", "total", "global_avg", "median"})
_DEPTH = 12


def is_own(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether an expression is, or is computed from, the loss of this rank alone."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        return _is_own_place(plan, node, function, depth)
    if isinstance(node, cst.Call):
        return _is_own_call(plan, node, function, depth)
    parts: list[Node] = [node.value] if isinstance(node, cst.Subscript) else []
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
    if isinstance(func, cst.Attribute) and func.attr.value in _METHODS | _MEANS:
        if is_own(plan, func.value, function, depth - 1):
            return True
    callee = plan.flow.callee(call)
    if callee is not None:
        return not shares(plan, callee) and _gives_own(plan, callee, None, depth)
    if is_sharded_output(plan, call, _reduced(plan)):
        return True
    last = (dotted(func) or "").rpartition(".")[2]
    return last in _FUNCTIONS and any(is_own(plan, arg.value, function, depth - 1) for arg in call.args)


def _gives_own(plan: Plan, callee: Function, index: int | None, depth: int) -> bool:
    returned = plan.flow.by_place.get(plan.flow.returned(callee, index), ())
    return any(is_own(plan, b.value, b.function, depth - 1) for b in returned if b.index is None)


def _is_own_place(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    place = plan.flow.place(node, function)
    if place is None or place in _reduced(plan):
        return False
    known: dict[Place, bool] = plan.facts.setdefault("own_places", {})
    if place not in known:
        known[place] = False  # values that are made of themselves
        known[place] = place in _losses(plan) or _is_made_of_own(plan, node, place, function, depth)
    return known[place]


def _is_made_of_own(plan: Plan, node: Node, place: Place, function: Function, depth: int) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value in _MEANS and not _shares_inside(plan, node.value, function):
        if is_own(plan, node.value, function, depth - 1):
            return True
    bindings = [b for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"]
    values = [b.value for b in bindings if b.index is None] + added(plan).get(place, [])
    if any(is_own(plan, value, function, depth - 1) for value in values):
        return True
    for binding in bindings:
        callee = plan.flow.callee(binding.value) if isinstance(binding.value, cst.Call) else None
        if binding.index is not None and callee is not None and not shares(plan, callee):
            if _gives_own(plan, callee, binding.index, depth):
                return True
    return False


def _shares_inside(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an object is of a class of the script whose methods make values the same on all ranks."""
    place = plan.flow.place(node, function)
    classes = plan.flow.kinds.get(place, ()) if place is not None else ()
    return any(shares(plan, method) for cls in classes for method in cls.methods.values())


def shares(plan: Plan, function: Function) -> bool:
    """Whether a function makes a value the same on all ranks, by the names of what it calls."""
    known: set[Function] | None = plan.facts.get("sharing_functions")
    if known is None:
        calls = [call for call in plan.tree.calls if _COLLECTIVE.search(dotted(call.func) or "")]
        known = plan.facts["sharing_functions"] = {plan.function_of(call) for call in calls}
    return function in known


def _losses(plan: Plan) -> set[Place]:
    """The variables that backward runs on."""
    found: set[Place] | None = plan.facts.get("places_of_losses")
    if found is None:
        places = [plan.place_of(loss_of(plan, call)) for call in find_backward(plan)]
        found = plan.facts["places_of_losses"] = {place for place in places if place is not None and place[0] == "v"}
    return found


def added(plan: Plan) -> dict[Place, list[Node]]:
    """What ``total += …`` adds to a variable, and ``meter.update(…)`` or ``losses.append(…)`` to an object."""
    found: dict[Place, list[Node]] | None = plan.facts.get("added_values")
    if found is None:
        found = plan.facts["added_values"] = {}
        for statement in plan.tree.statements:
            node = statement.node
            place = plan.flow.place(node.target, statement.function) if isinstance(node, cst.AugAssign) else None
            if place is not None:
                found.setdefault(place, []).append(node.value)  # type: ignore[attr-defined]
        for call in plan.tree.calls:
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in _FILLS and call.args:
                place = plan.place_of(func.value)
                if place is not None:
                    found.setdefault(place, []).append(call.args[0].value)
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
