"""Tests that are true on some ranks only, also where a variable or an attribute carries the answer under any name."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, descendants

_RANKISH = re.compile(
    r"rank|is_main|is_master|main_process|master_process|is_primary|primary|is_chief|\bmaster\b|is_root|is_global_zero|"
    r"\bgpu(?:_id)?\b\s*==\s*0|is_logger|local_master|get_rank|\bproc(?:ess)?_(?:id|index|idx)\b",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:^|_)rank$|^get_\w*rank$|^local_process_index$|^process_index$|^gpu(?:_id)?$", re.IGNORECASE)
_MAIN = re.compile(
    r"^(?:is_?)?(?:global_|local_|world_)?(?:main|master|chief|primary|root|leader)(?:_process|_rank|_proc|_node)?$"
    r"|rank_(?:zero|0)$|is_global_zero|is_rank0|rank0$|is_logger$|^is_(?:main|master|chief|primary|root)_",
    re.IGNORECASE,
)
_DEPTH = 4


def names_rank(plan: Plan, test: Node) -> bool:
    """Whether a test has a word for the rank in it, whatever it asks of it."""
    return bool(_RANKISH.search(plan.code(test)))


def asks_for_rank(plan: Plan, test: Node, function: Function) -> bool:
    """Whether a test names the rank, or a variable or an attribute that has another value on some ranks."""
    return names_rank(plan, test) or any(
        isinstance(sub, cst.Name | cst.Attribute) and splits_ranks(plan, sub, function) for sub in descendants(test)
    )


def splits_ranks(plan: Plan, test: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether a test lets some ranks through and others not (``rank == 0``, ``is_main_process()``, ``not rank``).

    ``local_rank != -1`` and the like ask whether the run is distributed at all, and have one answer on all ranks.
    """
    if depth == 0:
        return False
    if isinstance(test, cst.BooleanOperation):
        return splits_ranks(plan, test.left, function, depth) or splits_ranks(plan, test.right, function, depth)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_rank(plan, test.expression, function) or splits_ranks(plan, test.expression, function, depth)
    if isinstance(test, cst.IfExp):
        return any(splits_ranks(plan, part, function, depth) for part in (test.test, test.body, test.orelse))
    if isinstance(test, cst.Comparison):
        return _compares(plan, test, function)
    if isinstance(test, cst.Call):
        name = (dotted(test.func) or "").rpartition(".")[2]
        callee = plan.flow.callee(test)
        return _names_main(name) or (callee is not None and _given(plan, plan.flow.returned(callee), depth))
    if isinstance(test, cst.Name | cst.Attribute):
        name = (dotted(test) or "").rpartition(".")[2]
        place = plan.flow.place(test, function)
        return _names_main(name) or (place is not None and _given(plan, place, depth))
    return False


def _given(plan: Plan, place: tuple[str, int | str, str], depth: int) -> bool:
    return any(
        binding.index is None and splits_ranks(plan, binding.value, binding.function, depth - 1)
        for binding in plan.flow.by_place.get(place, ())
        if binding.kind in ("assign", "argument", "return")
    )


def _names_main(name: str) -> bool:
    return bool(_MAIN.search(name)) and name.lower() not in ("main", "root", "master")


def _is_rank(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    if isinstance(node, cst.Call) and dotted(node.func) == "int" and node.args:
        node = node.args[0].value
    if isinstance(node, cst.BinaryOperation):  # `rank % processes_of_a_node`
        return any(_is_rank(plan, side, function, depth) for side in (node.left, node.right))
    if isinstance(node, cst.Subscript):
        return any(f"[{quote}{name}{quote}]" in plan.code(node) for name in ("RANK", "LOCAL_RANK") for quote in "'\"")
    text = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    if _RANK.search(text.rpartition(".")[2]):
        return True
    place = plan.flow.place(node, function) if isinstance(node, cst.Name | cst.Attribute) else None
    return any(
        isinstance(binding.value, cst.Call | cst.Subscript)
        and _is_rank(plan, binding.value, binding.function, depth - 1)
        for binding in (plan.flow.by_place.get(place, ()) if place is not None and depth else ())
        if binding.kind in ("assign", "argument")
    )


def _compares(plan: Plan, test: cst.Comparison, function: Function) -> bool:
    if len(test.comparisons) != 1:
        return False
    operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
    left = test.left
    if not _is_rank(plan, left, function):
        if not _is_rank(plan, right, function):
            return False
        left, right = right, left
    if isinstance(operator, cst.In | cst.NotIn):
        elements = [e.value for e in right.elements] if isinstance(right, cst.Tuple | cst.List | cst.Set) else []
        return any(_whole_number(element) not in (None, -1) for element in elements)
    if isinstance(operator, cst.Equal | cst.NotEqual):
        return _whole_number(right) != -1 and dotted(right) != "None"
    return isinstance(operator, cst.LessThan | cst.GreaterThan) and _whole_number(right) == (
        0 if isinstance(operator, cst.GreaterThan) else 1
    )


def _whole_number(node: Node) -> int | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _whole_number(node.expression)
        return None if inner is None else -inner
    return node.evaluated_value if isinstance(node, cst.Integer) else None
