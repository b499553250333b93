"""MG110 again: a training loop that calls the model one way or another by each rank's own random numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_NUMBER = re.compile(
    r"^(?:random|secrets)\.\w+$|^numpy\.random\.(?:rand|random|random_sample|uniform|randint|choice|binomial)$"
)
_PICK = re.compile(
    r"^(?:random\.(?:choice|randrange|randint|getrandbits)|secrets\.\w+|numpy\.random\.(?:choice|randint))$"
)
_TENSOR = frozenset({"torch.rand", "torch.randn", "torch.randint"})
_FEW = frozenset({"", "1", "()", "[]", "(1,)", "[1]"})
_MOST_OF_NUMPY = {"uniform": 2, "randint": 2, "choice": 1, "binomial": 2}
_DEPTH = 3


def chosen_calls(plan: Plan) -> Iterator[Statement]:
    """Statements of functions that train, or are called by one, in which random numbers choose how the model is called."""
    training = {plan.function_of(call) for call in find_backward(plan)}
    for _ in range(_DEPTH):
        called = {
            f for f, calls in plan.flow.callers.items() if any(plan.function_of(call) in training for call in calls)
        }
        training = training | called
    for statement in plan.tree.statements:
        node = statement.node
        if statement.function not in training:
            continue
        if isinstance(node, cst.If) and _is_random(plan, node.test, statement.function):
            sides = [_calls(plan, node.body), _calls(plan, node.orelse) if node.orelse is not None else set()]
            if all(sides) and sides[0] != sides[1]:
                yield statement
        elif not isinstance(node, cst.BaseCompoundStatement) and _is_called_by_chance(plan, node, statement.function):
            yield statement


def _is_called_by_chance(plan: Plan, node: Node, function: Function) -> bool:
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and plan.is_ours(sub.func):
            if any(_is_choice(plan, arg.value, function) for arg in sub.args):
                return True
        elif isinstance(sub, cst.IfExp) and _is_random(plan, sub.test, function):
            sides = [_calls(plan, sub.body), _calls(plan, sub.orelse)]
            if all(sides) and sides[0] != sides[1]:
                return True
    return False


def _calls(plan: Plan, node: Node) -> set[tuple[str, ...]]:
    """How the model is called: how many arguments, which keywords, which constants."""
    return {
        tuple(
            (f"{arg.keyword.value}=" if arg.keyword is not None else "") + (plan.code(arg.value) if _is_constant(arg.value) else "")
            for arg in sub.args
        )
        for sub in descendants(node)
        if isinstance(sub, cst.Call) and plan.is_ours(sub.func)
    }  # fmt: skip


def _is_constant(node: Node) -> bool:
    return isinstance(node, cst.SimpleString | cst.Integer) or dotted(node) in ("None", "True", "False")


def _is_choice(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether an argument is a switch, an index or an element that random numbers chose; tensors of such are none."""
    if isinstance(node, cst.Comparison | cst.IfExp):
        return _is_random(plan, node.test if isinstance(node, cst.IfExp) else node, function)
    if isinstance(node, cst.Call):
        is_bool = dotted(node.func) in ("bool", "int") and bool(node.args)
        names = plan.imports.names(node.func)
        picks = any(_PICK.match(name) for name in names) and _is_one_number(plan, node, names)
        if picks or (is_bool and _is_choice(plan, node.args[0].value, function, depth)):
            return True
        return bool(depth) and any(
            _is_choice(plan, binding.value, binding.function, depth - 1)
            for callee in plan.flow.callees(node)
            for binding in plan.flow.by_place.get(plan.flow.returned(callee), ())
        )
    if isinstance(node, cst.ListComp):
        return _is_choice(plan, node.elt, function, depth)
    if not isinstance(node, cst.Name) or not depth:
        return False
    for binding in plan.flow.by_place.get(plan.flow.variable(node.value, function), ()):
        if binding.kind != "assign" or binding.function is not function:
            continue
        if _is_choice(plan, binding.value, function, depth - 1):
            return True
        tests = [outer.node.test for outer in binding.statement.enclosing() if isinstance(outer.node, cst.If)]
        if _is_constant(binding.value) and any(_is_random(plan, test, function) for test in tests):
            return True
    return False


def _is_random(plan: Plan, test: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether a test has a single random number in it, be it through variables of its function."""
    for sub in descendants(test):
        if isinstance(sub, cst.Call) and _is_one_number(plan, sub, plan.imports.names(sub.func)):
            return True
        if isinstance(sub, cst.Name) and depth:
            bindings = plan.flow.by_place.get(plan.flow.variable(sub.value, function), ())
            own = [b for b in bindings if b.kind == "assign" and b.function is function and b.index is None]
            if any(not _is_large(plan, b.value) and _is_random(plan, b.value, function, depth - 1) for b in own):
                return True
    return False


def _is_large(plan: Plan, value: Node) -> bool:
    """Whether a value is more than a number, a comparison or an ``item()``: a call that only has random numbers in it."""
    if not isinstance(value, cst.Call):
        return False
    is_item = isinstance(value.func, cst.Attribute) and value.func.attr.value == "item"
    return not is_item and not _is_one_number(plan, value, plan.imports.names(value.func))


def _is_one_number(plan: Plan, call: cst.Call, names: set[str]) -> bool:
    """``random.random()``, ``np.random.rand()``, ``torch.rand(1)``; not a tensor or an array of many."""
    given = [plan.code(arg.value) for arg in call.args]
    if names & _TENSOR:
        sizes = given[-1:] if any(name.endswith("randint") for name in names) else given
        return all(size in _FEW for size in sizes)
    for name in names:
        if _NUMBER.match(name):
            return not name.startswith("numpy") or len(given) <= _MOST_OF_NUMPY.get(name.rpartition(".")[2], 0)
    return False
