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
    norm_type = argument(call, 2, "norm_type")
    if norm_type is not None and number(norm_type) not in (2, 2.0):
        return False
    return params is not None and is_all(plan, params, 4)


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
            return "requires_grad" in plan.code(node.args[0].value) and is_all(plan, node.args[1].value, depth - 1)
        return False
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        text = plan.code(node).replace(" ", "")
        plain = text[1:-1].startswith("pforpin") and ("if" not in text or "requires_grad" in text)
        return plain and is_all(plan, node.for_in.iter, depth - 1)
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.place_of(node)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return bool(bindings) and all(
            b.index is None and b.kind not in ("for", "with") and is_all(plan, b.value, depth - 1) for b in bindings
        )
    return False


def _is_sole_model(plan: Plan, node: Node) -> bool:
    """``self.model.parameters()`` where the attribute is known as the model only by its engine name."""
    text = dotted(node)
    engine = plan.engine_in(node)
    return text is not None and engine is not None and text in (engine, f"{engine}.module")
