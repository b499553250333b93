"""An engine of the script's own, beside its DDP branch: what makes it, and the backward that it runs."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.tree import Function, Node

_INITIALIZE = "deepspeed.initialize"
_DEPTH = 5


def run(plan: Plan) -> None:
    """Mark where ``deepspeed.initialize`` is handed on; MG904 says the same of a call."""
    for statement in plan.facts.get("own_engines", ()):
        said = "the lines converted for the engine of the other path run with it too: try this path, or take it out"
        if not _is_made_beside(plan):
            said = "take it out, the engine made below would wrap that one"
        plan.todo("MG904", statement, f"this path makes an engine of its own: {said}",
                  "deepspeed.initialize is handed on here; what it makes is no plain model")  # fmt: skip


def _is_made_beside(plan: Plan) -> bool:
    """Whether the script's own engine is made only where the one of the conversion is not: in the other branch of a test."""
    assert plan.site is not None
    here = dict(branches_to(plan.site.anchor))
    made = [call for call in plan.tree.calls if makes_engine(plan, call, plan.function_of(call))]
    return bool(made) and all(
        any(isinstance(node, cst.If) and here.get(node, branch) != branch for node, branch in branches_to(where))
        for where in map(plan.tree.statement, made)
    )


def makes_engine(plan: Plan, value: Node, function: Function) -> bool:
    """Whether a value comes from ``deepspeed.initialize`` under another name, as in ``make = deepspeed.initialize``."""
    return isinstance(value, cst.Call) and _may_be_initialize(plan, value.func, function, _DEPTH)


def runs_own_backward(plan: Plan, call: cst.Call) -> bool:
    """``model.backward(loss)``: what only an engine has, so that the loss is its argument and nothing is left to rewrite."""
    base = call.func.value if isinstance(call.func, cst.Attribute) else None
    given = [arg for arg in call.args if arg.keyword is None and not arg.star]
    return isinstance(base, cst.Name | cst.Attribute) and bool(given) and plan.is_ours(base)


def _may_be_initialize(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    if _INITIALIZE in plan.imports.names(node):
        return True
    place = plan.flow.place(node, function)
    if place is None or not depth:
        return False
    for binding in plan.flow.by_place.get(place, ()):
        callee = plan.flow.callee(binding.value) if isinstance(binding.value, cst.Call) else None
        if binding.index is None:
            if callee is None and _may_be_initialize(plan, binding.value, binding.function, depth - 1):
                return True
        elif callee is not None:
            returned = plan.flow.by_place.get(plan.flow.returned(callee, binding.index), ())
            if any(_may_be_initialize(plan, b.value, b.function, depth - 1) for b in returned):
                return True
    return False
