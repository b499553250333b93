"""MG705 again: a model that changes its own parameters by hand, as a momentum encoder does, holds empty ones at ZeRO 3."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.modules import is_method_of_a_module
from dsmigrate.codemod.tree import Node, descendants

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_IN_PLACE = re.compile(r"^(?:copy|add|sub|mul|div|lerp|addcmul|addcdiv|fill|zero|clamp|normal|uniform)_$")


def run(plan: Plan) -> None:
    """Mark loops in methods of modules that write to the parameters they go over; nothing to do below stage 3.

    Measured with DeepSpeed 0.19.8: as it is, such a loop changes nothing at stage 3; gathered within the forward it
    fails ("already in registry"); gathered in front of the forward it gives the same losses.
    """
    if plan.zero_stage != 3:
        return
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.For) or not is_method_of_a_module(plan, statement.function):
            continue
        if _goes_over_parameters(node.iter) and _writes(plan, node):
            plan.todo(
                "MG705", statement,
                "call this outside of the forward, with the parameters gathered on all ranks "
                "(deepspeed.zero.GatheredParameters, modifier_rank=0)",
                "the module holds empty tensors at ZeRO stage 3, and none can be gathered by hand within a forward",
            )  # fmt: skip


def _goes_over_parameters(node: Node) -> bool:
    return any(
        isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value in _PARAMETERS
        for sub in descendants(node)
    )


def _writes(plan: Plan, loop: cst.For) -> bool:
    """Whether the body assigns to ``p.data`` of a loop variable, or calls something like ``p.data.mul_`` or ``p.copy_``."""
    names = {sub.value for sub in descendants(loop.target) if isinstance(sub, cst.Name)}
    for sub in descendants(loop.body):
        if isinstance(sub, cst.Assign) and any(_is_data(plan, target.target, names) for target in sub.targets):
            return True
        if isinstance(sub, cst.AugAssign) and _is_data(plan, sub.target, names):
            return True
        if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and _IN_PLACE.match(sub.func.attr.value):
            owner = sub.func.value
            if _is_data(plan, owner, names) or (isinstance(owner, cst.Name) and owner.value in names):
                return True
    return False


def _is_data(plan: Plan, node: Node, names: set[str]) -> bool:
    if not isinstance(node, cst.Attribute) or node.attr.value != "data":
        return False
    return plan.code(node.value).strip() in names
