"""What ``scaler is not None`` asks: the option under which the script makes a gradient scaler."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import Binding
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node

_MOST_CALLERS = 4


def scaler_condition(plan: Plan, node: Node, function: Function) -> str | None:
    """Source text, at the place of the engine, for a test whether there is a scaler; None where it is no such test."""
    held, is_made = _asked(node)
    if held is None:
        return None
    bindings = _origin(plan, held, function)
    made = [b for b in bindings if not _is_none(b.value)]
    if len(made) != 1 or made[0].index is not None or made[0].kind != "assign":
        return None
    text = _made_when(plan, made[0], is_always=len(bindings) == 1)
    return text if text is None or is_made else f"not ({text})"


def _asked(node: Node) -> tuple[Node | None, bool]:
    """The scaler that a comparison with None speaks of, and whether it is true where there is one."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None, False
    target = node.comparisons[0]
    if not _is_none(target.comparator) or not isinstance(target.operator, cst.Is | cst.IsNot):
        return None, False
    return node.left, isinstance(target.operator, cst.IsNot)


def _is_none(node: Node) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _origin(plan: Plan, node: Node, function: Function) -> list[Binding]:
    """What a variable is bound to, through the one argument that callers give."""
    for _ in range(_MOST_CALLERS):
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, []) if place is not None else []
        given = {plan.flow.place(b.value, b.function) for b in bindings if b.kind == "argument"}
        if not bindings or any(b.kind != "argument" for b in bindings) or len(given) != 1 or None in given:
            return bindings
        node, function = bindings[0].value, bindings[0].function
    return []


def _made_when(plan: Plan, binding: Binding, *, is_always: bool) -> str | None:
    """The condition under which an assignment makes a scaler."""
    value, function = binding.value, binding.function
    if isinstance(value, cst.IfExp):
        if not is_always or any(binding.statement.enclosing()):
            return None
        if "G" in plan.tags(value.body) and _is_none(value.orelse):
            return carry(plan, value.test, function)
        text = carry(plan, value.test, function) if _is_none(value.body) and "G" in plan.tags(value.orelse) else None
        return None if text is None else f"not ({text})"
    outer = list(binding.statement.enclosing())
    if "G" not in plan.tags(value) or len(outer) != 1:
        return None
    test = outer[0].node.test if isinstance(outer[0].node, cst.If) else None
    text = carry(plan, test, function) if test is not None else None
    return text if text is None or binding.statement.branch == "body" else f"not ({text})"
