"""Values that a training measures, and what hangs on them: each rank has its own, unless it shares them with the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import Binding, Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.own_losses import added, is_own
from dsmigrate.codemod.steps.reaching import leads_to_backward
from dsmigrate.codemod.tree import Function, Node, Statement, semantic_children

_WORDS = re.compile(
    r"(?:^|_)(?:avg|average|loss(?:es)?|acc(?:uracy|uracies)?|top|prec(?:ision)?|recall|metrics?|scores?|best|better|improved?|m?iou|m?ap|m?dice|"
    r"psnr|ssim|lpips|fid|ppl|perplexity|bleu|rouge|wer|cer|f1|auc|auroc|eer|err|errors?|mse|mae|rmse|epe|reward)\d*(?:_|$)"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CARRIED = frozenset({"assign", "argument", "return"})
_DEPTH = 6


def is_measured(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether an expression asks for a loss or a metric: by its words, or as it is computed from one."""
    return any(_is_one(plan, part, function, depth) for part in _parts(plan, node))


def _parts(plan: Plan, node: Node) -> Iterator[Node]:
    """The names, attributes and calls that the value of an expression hangs on; a function of the script gives what it returns."""
    if isinstance(node, cst.Name | cst.Attribute):
        yield node
    elif isinstance(node, cst.Call):
        yield node
        if plan.flow.callee(node) is None:
            inner = [node.func.value] if isinstance(node.func, cst.Attribute) else []
            for part in (*inner, *(arg.value for arg in node.args)):
                yield from _parts(plan, part)
    else:
        for child in semantic_children(node):
            yield from _parts(plan, child)


def _is_one(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    if isinstance(node, cst.Call):
        if plan.is_ours(node.func) or is_own(plan, node, function):
            return True
        callee = plan.flow.callee(node) if depth else None
        return callee is not None and _is_given(plan, plan.flow.returned(callee), depth)
    if _WORDS.search(_HUMP.sub("_", (dotted(node) or "").rpartition(".")[2]).lower()) or is_own(plan, node, function):
        return True
    place = plan.flow.place(node, function) if depth else None
    if place is None:
        return False
    sums = (value for value in added(plan).get(place, ()) if is_measured(plan, value, function, depth - 1))
    return _is_given(plan, place, depth) or next(sums, None) is not None


def _is_given(plan: Plan, place: Place, depth: int) -> bool:
    """Whether a place gets something measured, or gets what it gets only where something measured allows it."""
    known: dict[tuple[Place, int], bool] = plan.facts.setdefault("measured_places", {})
    if (place, depth) not in known:
        known[place, depth] = False  # values that are made of themselves
        known[place, depth] = _is_bound(plan, place, depth)
    return known[place, depth]


def _is_bound(plan: Plan, place: Place, depth: int) -> bool:
    return any(
        _is_under_measured(plan, binding.statement, depth - 1) or _brings_measured(plan, binding, depth - 1)
        for binding in plan.flow.by_place.get(place, ())
        if binding.kind in _CARRIED
    )


def _brings_measured(plan: Plan, binding: Binding, depth: int) -> bool:
    if binding.index is None:
        return is_measured(plan, binding.value, binding.function, depth)
    callee = plan.flow.callee(binding.value) if isinstance(binding.value, cst.Call) else None
    return callee is not None and depth > 0 and _is_given(plan, plan.flow.returned(callee, binding.index), depth)


def _is_under_measured(plan: Plan, statement: Statement, depth: int) -> bool:
    """Whether a test of something measured lets to a statement; one around a backward pass has one answer on all ranks."""
    return depth > 0 and any(
        isinstance(outer.node, cst.If)
        and is_measured(plan, outer.node.test, outer.function, depth)
        and not leads_to_backward(plan, outer)
        for outer in statement.enclosing()
    )
