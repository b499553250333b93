"""Whether an expression stands for all parameters of the trained model."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node


def covers_model(plan: Plan, call: cst.Call) -> bool:
    """Whether the clipped parameters are all parameters of the trained model."""
    params = argument(call, 0, "parameters")
    return is_second_norm(call) and params is not None and is_all(plan, params, 4)


def is_second_norm(call: cst.Call) -> bool:
    """Whether a clip is by the norm that the engine clips by."""
    norm_type = argument(call, 2, "norm_type")
    return norm_type is None or number(norm_type) in (2, 2.0)


def is_all(plan: Plan, node: Node, depth: int) -> bool:
    """Whether an expression gives all (trainable) parameters of the trained model."""
    if depth == 0:
        return False
    if isinstance(node, cst.Call):
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value == "parameters":
            return plan.is_ours(func.value) or _is_sole_model(plan, func.value)
        if any(name.endswith("amp.master_params") for name in plan.imports.names(func)):
            return True
        if dotted(func) in ("list", "tuple", "iter") and node.args:
            return is_all(plan, node.args[0].value, depth - 1)
        if dotted(func) == "filter" and len(node.args) == 2:
            return _keeps_trainable(node.args[0].value) and is_all(plan, node.args[1].value, depth - 1)
        return False
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        return _gives_trainable(node) and is_all(plan, node.for_in.iter, depth - 1)
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.place_of(node)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return bool(bindings) and all(
            b.index is None and b.kind not in ("for", "with") and is_all(plan, b.value, depth - 1) for b in bindings
        )
    return False


def _keeps_trainable(test: Node) -> bool:
    """``lambda p: p.requires_grad``, and nothing more that a parameter has to be."""
    if not isinstance(test, cst.Lambda) or len(test.params.params) != 1:
        return False
    return _has_gradient(test.body, test.params.params[0].name.value)


def _gives_trainable(node: cst.ListComp | cst.GeneratorExp) -> bool:
    """``p for p in … if p.requires_grad``, and no other test of a parameter."""
    target = node.for_in.target
    if not isinstance(target, cst.Name) or dotted(node.elt) != target.value or node.for_in.inner_for_in is not None:
        return False
    return all(_has_gradient(test.test, target.value) for test in node.for_in.ifs)


def _has_gradient(test: Node, name: str) -> bool:
    """Whether a test lets all parameters through that are trained: ``p.requires_grad``, ``p.grad is not None``."""
    if isinstance(test, cst.BooleanOperation):
        sides = [_has_gradient(side, name) for side in (test.left, test.right)]
        return all(sides) if isinstance(test.operator, cst.And) else any(sides)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        operator, other = test.comparisons[0].operator, dotted(test.comparisons[0].comparator)
        if isinstance(operator, cst.IsNot) and other == "None":
            return dotted(test.left) == f"{name}.grad"
        return (
            isinstance(operator, cst.Is | cst.Equal)
            and other == "True"
            and dotted(test.left) == f"{name}.requires_grad"
        )
    return dotted(test) == f"{name}.requires_grad"


def _is_sole_model(plan: Plan, node: Node) -> bool:
    """``self.model.parameters()`` where the attribute is known as the model only by its engine name."""
    text = dotted(node)
    engine = plan.engine_in(node)
    return text is not None and engine is not None and text in (engine, f"{engine}.module")
