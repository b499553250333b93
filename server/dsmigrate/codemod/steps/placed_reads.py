"""Where tensors of a checkpoint belong that the script goes on using as they are: averages, queues, centers."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, descendants

_KEPT = re.compile(
    r"(?:^|_)(?:ema|swa|shadow|avg|averaged?|queue|bank|memory|centers?|centroids?|proto(?:types?)?|codebook|buffers?|hidden|moving|running|fisher|anchors?)(?:_|$)",
    re.IGNORECASE,
)
_ON_CPU = re.compile(
    r"""^(?:["']cpu["']|torch\.device\(["']cpu["']\)|lambda (?P<storage>\w+), ?\w+: ?(?P=storage)(?:\.cpu\(\))?)$"""
)
_DEPTH = 4


def place_of(plan: Plan, load: cst.Call) -> cst.BaseExpression | None:
    """The ``map_location`` that a read was given, None where it is the CPU or nothing depends on it.

    A read without one brings tensors back to the device that they were saved on; where only numbers, and what a
    ``load_state_dict`` copies, are taken from it, they may as well come to the CPU.
    """
    given = argument(load, 1, "map_location")
    if isinstance(given, cst.BaseExpression) and dotted(given) != "None":
        return None if _ON_CPU.match(plan.code(given)) else given
    return cst.Name("None") if _stays_in_use(plan, load) else None


def _stays_in_use(plan: Plan, load: cst.Call) -> bool:
    return any(
        _KEPT.search(key) and _is_of(plan, base, statement.function, load, _DEPTH) and not _is_copied(plan, sub)
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement)
        for sub in descendants(statement.node)
        for base, key in _entries(sub)
    )


def _entries(node: Node) -> list[tuple[Node, str]]:
    """``checkpoint["key"]``, ``checkpoint.get("key")`` and ``checkpoint.pop("key")``."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        base, key = node.value, node.slice[0].slice.value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("get", "pop"):
        base, key = node.func.value, node.args[0].value if node.args else cst.Name("None")
    else:
        return []
    return [(base, str(key.evaluated_value))] if isinstance(key, cst.SimpleString) else []


def _is_copied(plan: Plan, node: Node) -> bool:
    """Whether an entry is handed to ``load_state_dict``, which copies it to where the module is."""
    return any(
        isinstance(outer, cst.Call)
        and isinstance(outer.func, cst.Attribute)
        and outer.func.attr.value == "load_state_dict"
        for outer in plan.tree.ancestors(node)
    )


def _is_of(plan: Plan, node: Node, function: Function, load: cst.Call, depth: int) -> bool:
    """Whether an expression is what a load gave."""
    if node is load:
        return True
    place = plan.flow.place(node, function) if depth and isinstance(node, cst.Name | cst.Attribute) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(_is_of(plan, b.value, b.function, load, depth - 1) for b in bindings if b.index is None)
