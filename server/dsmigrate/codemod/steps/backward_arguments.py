"""What ``loss.backward(…)`` is given, by position or by name, and what engine.backward can be given of it."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node

_MAKES = frozenset({
    "ones_like", "ones", "full_like", "full", "zeros_like", "zeros", "tensor", "as_tensor", "Tensor", "FloatTensor",
})  # fmt: skip
_KEEPS = frozenset({"to", "cuda", "cpu", "float", "half", "double", "type_as", "detach", "view", "squeeze", "clone"})
_DEPTH = 8
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def gradient_of(plan: Plan, call: cst.Call) -> Node | None:
    """The gradient that a loss's own backward starts from; refuses what engine.backward cannot be given."""
    if not _is_of_tensor(plan, call):
        return None
    given = argument(call, 0, "gradient")
    if any(arg.star == "*" for arg in call.args) or _is_given(argument(call, 3, "inputs")):
        raise plan.refuse("MG905", call, "backward is given arguments that are not seen, or inputs", "engine.backward cannot")  # fmt: skip
    if given is None or not _is_given(given):
        return None
    if not _is_tensor(plan, given, plan.function_of(call)):
        raise plan.refuse("MG905", call, f"backward is given {plan.code(given)}, which is not known to be a tensor",
                          "engine.backward takes the loss alone")  # fmt: skip
    return given


def passed_on(plan: Plan, call: cst.Call) -> list[cst.Arg]:
    """The arguments that engine.backward takes too: ``retain_graph`` unless it is False, and ``**kwargs``."""
    value = argument(call, 1 if _is_of_tensor(plan, call) else None, "retain_graph")
    passed = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in call.args if arg.star == "**"]
    if isinstance(value, cst.BaseExpression) and _is_given(value):
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        passed.insert(0, cst.Arg(value, cst.Name("retain_graph"), equal=equal))
    return passed


def second_order(plan: Plan, call: cst.Call) -> Node | None:
    """The value of ``create_graph``; None where it is False or absent."""
    value = argument(call, 2 if _is_of_tensor(plan, call) else None, "create_graph")
    if value is not None and dotted(value) == "True":
        raise plan.refuse("MG905", call, "backward(create_graph=True) builds a graph of gradients", "engine.backward cannot")  # fmt: skip
    return value if _is_given(value) else None


def weighted(loss: cst.BaseExpression, call: cst.Call) -> cst.BaseExpression:
    """``(loss * gradient).sum()``, whose backward is that of the loss from the gradient of a call."""
    gradient = argument(call, 0, "gradient")
    assert isinstance(gradient, cst.BaseExpression)
    product = cst.BinaryOperation(_whole(loss), cst.Multiply(), _whole(gradient), [cst.LeftParen()], [cst.RightParen()])
    return cst.Call(cst.Attribute(product, cst.Name("sum")))


def _is_of_tensor(plan: Plan, call: cst.Call) -> bool:
    """Whether the call is a tensor's own backward: neither an optimizer's nor a method of the script."""
    assert isinstance(call.func, cst.Attribute)
    return not plan.roles.is_optimizer(call.func.value) and plan.flow.callee(call) is None


def _whole(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, _PLAIN) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_given(value: Node | None) -> bool:
    return value is not None and dotted(value) not in ("None", "False")


def _is_tensor(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether a value is a tensor of numbers that the script makes: ``torch.ones_like(loss)``, ``-one``, or a variable for it."""
    if not depth:
        return False
    if isinstance(node, cst.UnaryOperation):
        return _is_tensor(plan, node.expression, function, depth - 1)
    if isinstance(node, cst.BinaryOperation):
        return any(_is_tensor(plan, side, function, depth - 1) for side in (node.left, node.right))
    if isinstance(node, cst.Call):
        func = node.func
        if any(name.startswith("torch.") and name.rpartition(".")[2] in _MAKES for name in plan.imports.names(func)):
            return True
        if not isinstance(func, cst.Attribute) or func.attr.value not in _KEEPS:
            return False
        return _is_tensor(plan, func.value, function, depth - 1)
    place = plan.flow.place(node, function) if isinstance(node, cst.Name) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    # `one = one.cuda()` says nothing by itself
    made = [b for b in bindings if not (isinstance(node, cst.Name) and _root(b.value) == node.value)]
    return bool(made) and all(
        b.kind == "assign" and b.index is None and _is_tensor(plan, b.value, b.function, depth - 1) for b in made
    )


def _root(node: Node) -> str | None:
    """The name that a chain of methods begins with."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPS:
        node = node.func.value
    return node.value if isinstance(node, cst.Name) else None
