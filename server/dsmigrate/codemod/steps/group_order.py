"""MG614: parameters that come to the optimizer in the order of a set, which differs from process to process."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, descendants, semantic_children

IDEAS = (
    Idea(
        "MG614",
        "Parameters in the order of a set",
        "The optimizer gets parameters by going over a set, whose order differs from process to process: the config gets "
        "ZeRO stage 0.",
        "Every rank of DDP steps its own optimizer, so that the order does not matter. ZeRO 1-3 lay the parameters of a group "
        "one after the other and give each rank a piece: ranks that disagree on the order step the wrong weights, without an "
        "error. Sort them (sorted(names), or go over model.named_parameters()) to use a stage.",
        "measured against DeepSpeed 0.19.8: another loss from the second step on at stages 1 and 2, the same as DDP's at 0",
        Kind.KEPT,
    ),
)

_MAKERS = frozenset({"set", "frozenset"})
_METHODS = frozenset({"union", "difference", "intersection", "symmetric_difference"})
_THROUGH = frozenset(
    {"list", "tuple", "iter", "filter", "map", "reversed", "chain", "from_iterable", "dict", "zip", "enumerate"}
)
_DEPTH = 6


def group_order(plan: Plan) -> None:
    """Choose ZeRO stage 0 where an optimizer's parameters come in the order of a set."""
    for site in plan.roles.optimizers:
        params = argument(site.call, 0, "params") if site.call is not None else None
        if params is None:
            continue
        found = _goes_over_set(plan, params, site.statement.function, _DEPTH)
        if found is not None:
            plan.needs_stage_zero("MG614", found, "parameters come to the optimizer in the order of a set, which differs by process",
                                  "ranks that disagree on the order step the wrong weights at ZeRO 1-3")  # fmt: skip


def _goes_over_set(plan: Plan, node: Node, function: Function, depth: int) -> Node | None:
    """The expression behind a value that goes over a set, if there is one; questions about members do no harm."""
    if _is_set(plan, node, function, depth):
        return node
    if isinstance(node, cst.Comparison | cst.Lambda) or not depth:
        return None
    if isinstance(node, cst.Call) and (dotted(node.func) or "").rpartition(".")[2] not in _THROUGH:
        callee = plan.flow.callee(node)
        returned = plan.flow.by_place.get(plan.flow.returned(callee), ()) if callee is not None else ()
        return next(
            (f for b in returned if (f := _goes_over_set(plan, b.value, b.function, depth - 1)) is not None), None
        )
    if isinstance(node, cst.Name | cst.Attribute):
        return _goes_over_set_by_name(plan, node, function, depth)
    for child in semantic_children(node):
        found = _goes_over_set(plan, child, function, depth)
        if found is not None:
            return found
    return None


def _goes_over_set_by_name(plan: Plan, node: Node, function: Function, depth: int) -> Node | None:
    """As ``_goes_over_set``, for a variable: what it is made of, and the loops that fill it."""
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    for binding in bindings:
        if binding.kind == "for":
            continue
        found = _goes_over_set(plan, binding.value, binding.function, depth - 1)
        if found is not None:
            return found
        for loop in _loops_that_fill(node, binding.function):
            if _is_set(plan, loop.iter, binding.function, depth - 1):
                return loop.iter
    return None


def _loops_that_fill(node: Node, function: Function) -> Iterator[cst.For]:
    """The loops of a function that append to a list, extend it, or fill the lists of a dictionary."""
    name = dotted(node)
    for statement in function.statements:
        if isinstance(statement.node, cst.For) and any(
            isinstance(sub, cst.Call)
            and isinstance(sub.func, cst.Attribute)
            and sub.func.attr.value in ("append", "extend", "insert")
            and (dotted(sub.func.value) == name or _item_of(sub.func.value) == name)
            for sub in descendants(statement.node.body)
        ):
            yield statement.node


def _item_of(node: Node) -> str | None:
    return dotted(node.value) if isinstance(node, cst.Subscript) else None


def _is_set(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether an expression is a set of parameters or names; a set of numbers has the same order everywhere."""
    if isinstance(node, cst.Set):
        return not all(isinstance(element.value, cst.Integer) for element in node.elements)
    if isinstance(node, cst.SetComp):
        return True
    if isinstance(node, cst.BinaryOperation):
        if not isinstance(node.operator, cst.Subtract | cst.BitOr | cst.BitAnd | cst.BitXor):
            return False
        return any(_is_set(plan, side, function, depth) for side in (node.left, node.right))
    if isinstance(node, cst.Call):
        if dotted(node.func) in _MAKERS:
            return True
        func = node.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value in _METHODS
            and _is_set(plan, func.value, function, depth)
        )
    if not isinstance(node, cst.Name | cst.Attribute) or not depth:
        return False
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(
        b.index is None and b.kind == "assign" and _is_set(plan, b.value, b.function, depth - 1) for b in bindings
    )
