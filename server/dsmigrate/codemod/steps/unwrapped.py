"""Expressions that give the trained model where they stand: ``unwrap(model)``, ``model.module if wrapped else model``."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node


def is_unwrapped(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a call or a choice gives the trained model; a call that is handed something gives that."""
    if not isinstance(node, cst.Call | cst.IfExp | cst.BooleanOperation | cst.NamedExpr):
        return False
    if isinstance(node, cst.Call) and node.args and plan.flow.callee(node) is not None:
        if not any(_is_ours(plan, arg.value, function) for arg in node.args):
            return False
    return _is_ours(plan, node, function)


def _is_ours(plan: Plan, node: Node, function: Function) -> bool:
    return any(tag[0] in "ER" and tag[1:] in plan.group for tag in plan.roles.of(node, function))
