"""What decides about a statement: a condition, whether it holds in every run, and its text where the engine is made."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import libcst as cst

from dsmigrate.codemod.bindings import UNKNOWN
from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import is_ddp_class
from dsmigrate.codemod.tree import Function, Node

Evaluator: TypeAlias = Callable[[Plan, Node, Function], Any]
"""Gives the value of an expression of a function, ``UNKNOWN`` where there is none: ``settled`` or ``by_default``."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that decides about something; ``equals``: it has to be equal to this text, a literal.

    ``is_shared``: it decides about the wrap of the model too.
    """

    node: Node
    function: Function
    wanted: bool = True
    equals: str = ""
    is_shared: bool = False

    def negated(self) -> Condition:
        """The opposite."""
        return replace(self, wanted=not self.wanted)

    def is_like(self, other: Condition) -> bool:
        """Whether two conditions ask the same, whatever the answer."""
        return self.node is other.node and self.equals == other.equals


def truth(plan: Plan, condition: Condition, evaluate: Evaluator) -> bool | None:
    """Whether a condition holds; None where that is not known."""
    if condition.equals:
        value = evaluate(plan, condition.node, condition.function)
        found = (
            None
            if value is UNKNOWN
            else value == cst.ensure_type(cst.parse_expression(condition.equals), cst.SimpleString).evaluated_value
        )
    else:
        found = _holds(plan, condition.node, condition.function, evaluate)
    return None if found is None else found is condition.wanted


def _holds(plan: Plan, node: Node, function: Function, evaluate: Evaluator) -> bool | None:
    if isinstance(node, cst.BooleanOperation):
        sides = [_holds(plan, side, function, evaluate) for side in (node.left, node.right)]
        decisive = isinstance(node.operator, cst.Or)
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _holds(plan, node.expression, function, evaluate)
        return None if inner is None else not inner
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _compared(plan, node, function, evaluate)
    if isinstance(node, cst.Call):
        return True if _asks_for_the_wrapper(plan, node) else None
    value = evaluate(plan, node, function)
    return None if value is UNKNOWN else bool(value)


_OPERATORS: dict[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.In: lambda left, right: left in right,
    cst.NotIn: lambda left, right: left not in right,
}


def _compared(plan: Plan, node: cst.Comparison, function: Function, evaluate: Evaluator) -> bool | None:
    target = node.comparisons[0]
    left, right = evaluate(plan, node.left, function), evaluate(plan, target.comparator, function)
    compare = _OPERATORS.get(type(target.operator))
    if left is UNKNOWN or right is UNKNOWN or compare is None:
        return None
    try:
        return bool(compare(left, right))
    except TypeError:
        return None


def _asks_for_the_wrapper(plan: Plan, call: cst.Call) -> bool:
    """``isinstance(model, DDP)``, ``hasattr(model, "module")`` and such, of the model that the script wraps."""
    name = dotted(call.func)
    if name not in ("isinstance", "hasattr") or len(call.args) != 2:
        return False
    subject, question = call.args[0].value, call.args[1].value
    if not plan.is_ours(subject):
        return False
    if name == "isinstance":
        return is_ddp_class(plan.imports, question)
    return isinstance(question, cst.SimpleString) and question.evaluated_value in ("module", "register_comm_hook")


def text_of(plan: Plan, condition: Condition) -> str | None:
    """Source text of a condition for the place where the engine is made, to be joined by ``and``; None where it cannot be had."""
    text = carry(plan, condition.node, condition.function)
    if text is None:
        return None
    if condition.equals:
        text = f"{_tight(text)} {'==' if condition.wanted else '!='} {condition.equals}"
    elif not condition.wanted:
        text = f"not {_tight(text)}"
    return f"({text})" if isinstance(cst.parse_expression(text), _LOOSE) and not text.startswith("(") else text


_LOOSE = (cst.BooleanOperation, cst.IfExp, cst.Lambda)


def _tight(text: str) -> str:
    """An expression that can stand beside an operator."""
    whole = cst.parse_expression(text)
    simple = isinstance(whole, cst.Name | cst.Attribute | cst.Subscript | cst.Call | cst.BaseNumber | cst.SimpleString)
    return text if simple or whole.lpar else f"({text})"
