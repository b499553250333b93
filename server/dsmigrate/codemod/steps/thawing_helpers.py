"""MG607 again: functions that switch requires_grad on the module that they are handed (``set_requires_grad(part, on)``)."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import Binding
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.owned import belongs
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_DEPTH = 4


def is_handed_later(plan: Plan, owner: Node, value: Node | None, statement: Statement) -> bool:
    """Whether a function that switches what it is handed gets the model, or a part of it, behind the engine."""
    handed = _handed(plan, owner, statement.function, _DEPTH)
    switched = [binding for binding in handed if _is_of_the_model(plan, binding)]
    later = [binding for binding in switched if not plan.is_before_engine(binding.statement.node)]
    before = {
        _meant(plan, binding)
        for binding in switched
        if binding not in later and _freezes(plan, value, binding, statement)
    }
    return any(not (_freezes(plan, value, b, statement) and _meant(plan, b) in before) for b in later)


def _handed(plan: Plan, node: Node, function: Function, depth: int) -> list[Binding]:
    """What callers hand in for the parameters that an expression, or the loop over it, is made from."""
    found: list[Binding] = []
    for sub in descendants(node) if depth else ():
        if not isinstance(sub, cst.Name) or sub.value == function.self_name:
            continue
        for binding in plan.flow.by_place.get(plan.flow.variable(sub.value, function), ()):
            inner = binding.value
            if binding.kind == "argument":
                further = _handed(plan, inner, binding.function, depth - 1)
                found += [binding] if _is_of_the_model(plan, binding) else further
            elif binding.function is function and inner is not node:
                found += _handed(plan, inner, function, depth - 1)
    return found


def _is_of_the_model(plan: Plan, binding: Binding) -> bool:
    value = binding.value
    parts = [element.value for element in value.elements] if isinstance(value, cst.List | cst.Tuple) else [value]
    return any(belongs(plan, part, binding.statement) for part in parts)


def _meant(plan: Plan, binding: Binding) -> str:
    """The part of the model that is handed in, however the model itself is called there."""
    return ".".join(plan.code(binding.value).replace(".module", "").split(".")[1:])


def _freezes(plan: Plan, value: Node | None, binding: Binding, statement: Statement) -> bool:
    """Whether a call of the function sets ``False``: the function does so itself, or is handed it."""
    if value is not None and dotted(value) == "False":
        return True
    if not isinstance(value, cst.Name):
        return False
    flags = plan.flow.by_place.get(plan.flow.variable(value.value, statement.function), ())
    own = [flag for flag in flags if flag.kind == "argument" and flag.statement is binding.statement]
    return bool(own) and all(dotted(flag.value) == "False" for flag in own)
