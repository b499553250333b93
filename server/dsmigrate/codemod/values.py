"""What an expression is worth: a value known now, or source text that gives it where the engine is made.

A setting that the script takes from its command line must keep following the command line, so it is carried to the
place of ``deepspeed.initialize`` as an expression; a literal, or a name that is a literal for good, goes to the JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import libcst as cst

from dsmigrate.codemod.bindings import BUILTINS, UNKNOWN, bound_values, is_rebound, literal_value
from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.options import option_default
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, descendants


@dataclass(frozen=True, slots=True)
class Value:
    """``static`` is the value as far as it is known now (a default, perhaps), ``expression`` how to get the real one.

    ``expression`` is None where ``static`` is the whole truth, or, with ``is_default``, where the real value cannot be
    had where the engine is made; ``known`` is False where nothing static was found.
    """

    static: Any = None
    expression: str | None = None
    known: bool = False
    is_default: bool = False

    @property
    def usable(self) -> bool:
        """Whether the value can be written down or carried over at all."""
        return self.known or self.expression is not None


def resolve(plan: Plan, node: Node, function: Function) -> Value:
    """The value of an expression of ``function``, as seen from the place of the engine."""
    literal = literal_value(node)
    if literal is not UNKNOWN:
        return Value(literal, known=True)
    static = _static(plan, node, function, 6)
    if static is not UNKNOWN and _is_final(plan, node, function):
        return Value(static, known=True)
    expression = carry(plan, node, function)
    if static is UNKNOWN:
        static = _default(plan, node, function)
    if static is UNKNOWN:
        return Value(None, expression)
    return Value(static, expression, known=True, is_default=expression is None)


def settled(plan: Plan, node: Node, function: Function) -> Any:
    """The value of an expression that is the same in every run; ``UNKNOWN`` where the script decides when it runs."""
    static = _static(plan, node, function, 6)
    return static if static is not UNKNOWN and _is_final(plan, node, function) else UNKNOWN


def by_default(plan: Plan, node: Node, function: Function) -> Any:
    """The value of an expression as long as no option of the command line is given; ``UNKNOWN`` where that is not seen."""
    static = _static(plan, node, function, 6)
    return static if static is not UNKNOWN else _default(plan, node, function)


def _is_final(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a static value cannot differ when the script runs."""
    if literal_value(node) is not UNKNOWN:
        return True
    if isinstance(node, cst.Name) and node.value not in BUILTINS:
        bindings = bound_values(plan, node, function)
        if not bindings and _never_given(plan, node.value, function):
            return True
        return not is_rebound(plan, node, function) and all(_is_final(plan, v, f) for v, f in bindings)
    if isinstance(node, cst.Attribute):
        return False
    return not any(isinstance(sub, cst.Name | cst.Attribute | cst.Call | cst.Subscript) for sub in descendants(node))


def _never_given(plan: Plan, name: str, function: Function) -> bool:
    """Whether a parameter keeps its default: every call of the function is seen, and none gives it."""
    calls = plan.flow.callers.get(function, ())
    if name not in function.params or not calls or any(arg.star for call in calls for arg in call.args):
        return False
    places = [
        plan.flow.place(s.node.target, function) for s in function.statements if isinstance(s.node, cst.AugAssign)
    ]
    return ("v", id(function), name) not in places


def _static(plan: Plan, node: Node, function: Function, depth: int) -> Any:
    """A value computed from literals, following names that are bound once; ``UNKNOWN`` where that fails."""
    if depth == 0:
        return UNKNOWN
    literal = literal_value(node)
    if literal is not UNKNOWN:
        return literal
    if isinstance(node, cst.Name):
        bindings = bound_values(plan, node, function)
        if len(bindings) == 1:
            return _static(plan, bindings[0][0], bindings[0][1], depth - 1)
        values = [_static(plan, v, f, depth - 1) for v, f in bindings]
        if not bindings:
            return _parameter_default(node.value, function)
        return values[0] if values and all(v == values[0] for v in values) else UNKNOWN
    if isinstance(node, cst.BinaryOperation):
        left, right = _static(plan, node.left, function, depth - 1), _static(plan, node.right, function, depth - 1)
        if isinstance(left, int | float) and isinstance(right, int | float):
            return _arithmetic(node.operator, left, right)
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        inner = _static(plan, node.args[0].value, function, depth - 1)
        if isinstance(inner, int | float):
            return int(inner) if dotted(node.func) == "int" else float(inner)
    return UNKNOWN


def _arithmetic(operator: Node, left: float, right: float) -> Any:
    try:
        if isinstance(operator, cst.Multiply):
            return left * right
        if isinstance(operator, cst.Add):
            return left + right
        if isinstance(operator, cst.Subtract):
            return left - right
        if isinstance(operator, cst.Divide):
            return left / right
        if isinstance(operator, cst.FloorDivide):
            return left // right
    except ArithmeticError:
        return UNKNOWN
    return UNKNOWN


def _parameter_default(name: str, function: Function) -> Any:
    if not isinstance(function.node, cst.FunctionDef):
        return UNKNOWN
    params = function.node.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        if param.name.value == name and param.default is not None:
            return literal_value(param.default)
    return UNKNOWN


def _default(plan: Plan, node: Node, function: Function) -> Any:
    """The default of a command-line option or class attribute that an expression reads, if it reads just one."""
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        return _default(plan, node.args[0].value, function)
    if isinstance(node, cst.Attribute):
        found = option_default(plan, node.attr.value)
        if found is not UNKNOWN:
            return found
        for cls in plan.tree.classes.values():
            for statement in plan.tree.statements:
                if statement.up is None or statement.up.node is not cls.node:
                    continue
                inner = statement.node
                if isinstance(inner, cst.Assign) and dotted(inner.targets[0].target) == node.attr.value:
                    return literal_value(inner.value)
                if isinstance(inner, cst.AnnAssign) and dotted(inner.target) == node.attr.value and inner.value:
                    return literal_value(inner.value)
    if isinstance(node, cst.Name):
        bindings = bound_values(plan, node, function)
        for value, where in bindings:
            found = _default(plan, value, where)
            if found is not UNKNOWN:
                return found
        for value, where in bindings:
            found = _static(plan, value, where, 4)
            if found is not UNKNOWN:
                return found
    if isinstance(node, cst.Subscript):
        return UNKNOWN
    return UNKNOWN
