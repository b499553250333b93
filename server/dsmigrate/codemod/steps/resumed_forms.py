"""Forms in which a script goes over a state dict and leaves a checkpoint of its own as it is."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.checkpoint_facts import same_text, sources, state_calls
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_PREFIX = re.compile(r"module|_orig_mod|\[(?:7|10):\]|prefix", re.IGNORECASE)
_SHAPES = re.compile(r"\.shape\b|\.size\(|\.numel\(")
_HALVES = frozenset({"half", "bfloat16", "type"})


def path_of(node: Node) -> tuple[Node, tuple[str | None, ...]]:
    """``checkpoint["model"][key]`` as its base and keys, outermost first; None for a key that is not written out.

    ``checkpoint.get("model")`` is the same; ``.data`` and ``.weight`` of an entry count as keys of it.
    """
    keys: list[str | None] = []
    while True:
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None
            value = index.value if isinstance(index, cst.Index) else None
            keys.append(str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None)
            node = node.value
        elif (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in ("get", "pop")
        ):
            value = node.args[0].value if node.args else None
            keys.append(str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None)
            node = node.func.value
        elif isinstance(node, cst.Attribute) and node.attr.value == "data" and isinstance(node.value, cst.Subscript):
            node = node.value
        else:
            return node, tuple(reversed(keys))


def is_renaming(plan: Plan, node: cst.DictComp, *, strict: bool) -> bool:
    """``{key.replace("module.", ""): value for key, value in state.items()}``, also of the keys alone that the model has."""
    target = node.for_in.target
    if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or node.for_in.inner_for_in is not None:
        return False
    key, value = (plan.code(element.value) for element in target.elements)
    function = plan.function_of(node)
    if not _is_value(plan, node.value, value) or not _is_name(plan, node.key, key, function, strict=strict):
        return False
    return all(
        _says_nothing(plan, part, function) for given in node.for_in.ifs for part in _conjuncts(given.test)
    )  # fmt: skip


def is_refill(plan: Plan, node: cst.Assign, statement: Statement, *, strict: bool) -> bool:
    """``new[key[7:]] = value`` in a loop over ``state.items()`` that leaves out nothing."""
    loop = next((outer for outer in statement.enclosing() if isinstance(outer.node, cst.For)), None)
    target = node.targets[0].target
    if loop is None or not isinstance(loop.node, cst.For) or not isinstance(target, cst.Subscript):
        return False
    names = loop.node.target
    index = target.slice[0].slice
    if not isinstance(names, cst.Tuple) or len(names.elements) != 2 or not isinstance(index, cst.Index):
        return False
    key, value = (plan.code(element.value) for element in names.elements)
    inside = plan.tree.statements[loop.order + 1 : loop.last_order + 1]
    if any(isinstance(other.node, cst.Continue | cst.Break | cst.Del) for other in inside):
        return False
    if not _is_value(plan, node.value, value) or not _is_name(
        plan, index.value, key, statement.function, strict=strict
    ):
        return False
    return all(_is_open(plan, outer) for outer in statement.enclosing() if loop.order < outer.order)


def _is_open(plan: Plan, outer: Statement) -> bool:
    """Whether a condition in the loop says nothing, or its other branch keeps the entry too."""
    if not isinstance(outer.node, cst.If):
        return isinstance(outer.node, cst.With)
    if outer.node.orelse is not None or outer.branch == "orelse":
        return True
    return all(_says_nothing(plan, part, outer.function) for part in _conjuncts(outer.node.test))


def puts_back(plan: Plan, node: cst.Assign, statement: Statement) -> bool:
    """``state[new] = state.pop(old)``: another name for the same entry."""
    base, _ = path_of(node.targets[0].target)
    value: Node = node.value
    if isinstance(value, cst.Name):
        place = plan.flow.place(value, statement.function)
        values = [b.value for b in plan.flow.by_place.get(place, ()) if b.index is None] if place is not None else []
        value = values[0] if len(values) == 1 else value
    held, path = path_of(value)
    if not path or not same_text(plan, held, base):
        return False
    return isinstance(value, cst.Call) or any(
        isinstance(other.node, cst.Del) and same_text(plan, other.node.target, value)
        for other in statement.function.statements
        if other.block is statement.block
    )


def is_put_back(plan: Plan, node: cst.Assign, statement: Statement) -> bool:
    """``value = state.pop(old)`` with ``state[new] = value`` below."""
    held, path = path_of(node.value)
    if not isinstance(node.value, cst.Call) or not path:
        return False
    return any(
        isinstance(other.node, cst.Assign)
        and plan.code(other.node.value) == plan.code(node.targets[0].target)
        and same_text(plan, path_of(other.node.targets[0].target)[0], held)
        for other in statement.function.statements
        if other.block is statement.block and other.order > statement.order
    )


def removes_nothing(plan: Plan, target: Node, statement: Statement) -> bool:
    """``del state[old]`` beside ``state[new] = state[old]``."""
    return any(
        isinstance(other.node, cst.Assign) and same_text(plan, other.node.value, target)
        for other in statement.function.statements
        if other.block is statement.block
    )


def keeps_own(plan: Plan, statement: Statement) -> bool:
    """Whether a change stands behind a test that no checkpoint of the script itself meets: a shape that differs."""
    branch = statement.branch
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and branch == "body":
            if any(_never_own(plan, part, outer.function) for part in _conjuncts(outer.node.test)):
                return True
        branch = outer.branch
    return False


def _never_own(plan: Plan, test: Node, function: Function) -> bool:
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    comparison = test.comparisons[0]
    if isinstance(comparison.operator, cst.NotEqual):
        return bool(_SHAPES.search(plan.code(test)))
    if isinstance(comparison.operator, cst.NotIn):
        return not isinstance(test.left, cst.SimpleString) and _is_state_of_model(plan, comparison.comparator, function)
    return False


def _says_nothing(plan: Plan, test: Node, function: Function) -> bool:
    """Whether a test holds for every entry of a checkpoint of this model: its key is one of the model's, its shape the same."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        comparison = test.comparisons[0]
        if isinstance(comparison.operator, cst.In):
            return not isinstance(test.left, cst.SimpleString) and _is_state_of_model(
                plan, comparison.comparator, function
            )
        return isinstance(comparison.operator, cst.Equal) and bool(_SHAPES.search(plan.code(test)))
    return False


def _is_state_of_model(plan: Plan, node: Node, function: Function) -> bool:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "keys":
        node = node.func.value
    return any(
        kind == "M" for source, _ in sources(plan, node, function, 4) for _, kind in state_calls(plan, source)
    )  # fmt: skip


def _is_value(plan: Plan, node: Node, name: str) -> bool:
    """The loop's value as it is, or moved."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        method = node.func.attr.value
        if method not in (PASS_METHODS | {"clone", "detach"}) - _HALVES:
            return False
        node = node.func.value
    return plan.code(node) == name


def _is_name(plan: Plan, node: Node, key: str, function: Function, *, strict: bool) -> bool:
    """A key as it is or without a prefix; with ``strict`` any name, as loading would fail where one does not fit."""
    text = plan.code(node)
    if text == key or strict or _PREFIX.search(text):
        return True
    place = plan.flow.place(node, function) if isinstance(node, cst.Name) else None
    values = [b.value for b in plan.flow.by_place.get(place, ())] if place is not None else []
    return bool(values) and all(plan.code(value) == key or _PREFIX.search(plan.code(value)) for value in values)


def _conjuncts(test: Node) -> list[Node]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return [*_conjuncts(test.left), *_conjuncts(test.right)]
    return [test]


def renewed_at(plan: Plan, place: Place, use: Statement) -> int:
    """The order of the statement from which a variable holds something new on every way to a use; 0 where none is."""
    path = branches_to(use)
    found = 0
    branches: dict[Statement, set[str]] = {}
    for binding in plan.flow.by_place.get(place, ()):
        statement = binding.statement
        if binding.function is not use.function or statement.order >= use.order:
            continue
        if any(plan.flow.place(sub, binding.function) == place for sub in descendants(binding.value)):
            continue
        around = branches_to(statement)
        if around == path[: len(around)]:
            found = max(found, statement.order)
        elif around[:-1] == path[: len(around) - 1] and statement.up is not None:  # in both branches of an `if`
            sides = branches.setdefault(statement.up, set())
            sides.add(statement.branch)
            if {"body", "orelse"} <= sides:
                found = max(found, statement.up.order)
    return found


def are_exclusive(left: Statement, right: Statement) -> bool:
    """Whether two statements stand in different branches of one ``if``."""
    branches = dict(branches_to(left))
    return any(branches.get(node, branch) != branch for node, branch in branches_to(right) if isinstance(node, cst.If))
