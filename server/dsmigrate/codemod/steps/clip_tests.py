"""Tests around a clip that ask for its limit: the clip runs where there is one."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node


def asks_for_limit(plan: Plan, test: Node, limit: Node, *, zero: bool = False) -> bool:
    """``if limit:``, ``if limit > 0``, ``if limit is not None``, ``if limit != 0.0``; with ``zero``, those that 0 fails."""
    text = plan.code(limit)
    if plan.code(test) == text:
        return True
    if isinstance(test, cst.Call) and len(test.args) == 1 and plan.code(test.args[0].value) == text:
        return not zero and asks_for_none(plan, test)
    if isinstance(test, cst.Comparison) and plan.code(test.left) == text and len(test.comparisons) == 1:
        operator, other = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, cst.GreaterThan | cst.NotEqual) and number(other) == 0:
            return True
        if isinstance(operator, cst.IsNot) and dotted(other) == "None":
            return not zero
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        parts = (asks_for_limit(plan, part, limit, zero=zero) for part in (test.left, test.right))
        return any(parts) if zero else all(parts)
    return False


def asks_for_none(plan: Plan, call: cst.Call) -> bool:
    """``exists(x)``, where ``def exists(x): return x is not None``."""
    callee = plan.flow.callee(call)
    if callee is None or len(plan.flow.positional(callee)) != 1 or len(callee.statements) != 1:
        return False
    node, name = callee.statements[0].node, plan.flow.positional(callee)[0]
    value = node.value if isinstance(node, cst.Return) else None
    if not isinstance(value, cst.Comparison) or dotted(value.left) != name or len(value.comparisons) != 1:
        return False
    asked = value.comparisons[0]
    return isinstance(asked.operator, cst.IsNot) and dotted(asked.comparator) == "None"
