"""MG307 again: autocast that is switched on where no ``with`` statement or decorator around the model shows it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.dispatch import find_method
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.entered_regions import autocast_origins, decorators_of, is_manager, names_autocast
from dsmigrate.codemod.steps.reaching import calls_in, runs_engine
from dsmigrate.codemod.tree import Class, Function, Node, Statement, descendants

_SETTERS = frozenset({
    "set_autocast_enabled", "set_autocast_cpu_enabled", "set_autocast_xpu_enabled", "_set_autocast_enabled",
})  # fmt: skip
_ASKING = frozenset({"isinstance", "issubclass", "hasattr"})


def hidden_regions(plan: Plan) -> list[tuple[Node, Statement]]:
    """Uses of autocast that may reach the engine although nothing was found that runs it in a region."""
    if not any("autocast" in text for text in plan.facts["texts"]):
        return []
    uses = [*_uses(plan), *(call for call in plan.tree.calls if _switches_on(plan, call))]
    seen = _seen(plan) if uses else set()
    found = [node for node in uses if node not in seen and not _is_off(node) and not _within_a_module(plan, node)]
    return [(node, plan.tree.statement(node)) for node in found]


def _uses(plan: Plan) -> Iterator[Node]:
    """Every call of autocast, and every place at which it is handed on or kept."""
    for call in plan.tree.calls:
        if names_autocast(plan, call.func):
            yield call
        elif dotted(call.func) not in _ASKING:
            yield from (arg.value for arg in call.args if _is_name_of_autocast(plan, arg.value))
    for binding in plan.flow.bindings:
        if binding.kind in ("assign", "return") and _is_name_of_autocast(plan, binding.value):
            yield binding.value
    for cls in plan.tree.classes.values():
        yield from (base.value for base in cls.node.bases if _is_name_of_autocast(plan, base.value))


def _is_name_of_autocast(plan: Plan, node: Node) -> bool:
    return isinstance(node, cst.Name | cst.Attribute | cst.Call) and names_autocast(plan, node)


def _switches_on(plan: Plan, call: cst.Call) -> bool:
    """``torch.set_autocast_enabled(True)``, in its older and its newer form."""
    names = {name.rpartition(".")[2] for name in plan.imports.names(call.func)}
    if not names & _SETTERS or not call.args:
        return False
    return not any(dotted(arg.value) == "False" for arg in call.args)


def _seen(plan: Plan) -> set[Node]:
    """What ``with`` statements and decorators enter: their regions were looked at, and none is around the engine.

    A region in a manager of the script is around what the ``with`` statement is around that enters the manager; one around
    a call of something that the function is given is around what that is.
    """
    found: set[Node] = set()
    for statement in plan.tree.withs:
        if is_manager(statement.function) or _of_a_manager_class(plan, statement.function):
            continue
        if _runs_what_is_given(plan, statement):
            continue
        assert isinstance(statement.node, cst.With)
        for item in statement.node.items:
            found.update(node for node, _ in autocast_origins(plan, item.item, statement.function))
    for function in plan.tree.functions:
        if any(_is_given(plan, call) for call in calls_in(plan).get(function, ())):
            continue
        for decorator in decorators_of(plan, function):
            assert function.parent is not None
            found.update(node for node, _ in autocast_origins(plan, decorator, function.parent))
    return found


def _of_a_manager_class(plan: Plan, function: Function) -> bool:
    return (
        function.owner is not None
        and function.name in ("__enter__", "__init__")
        and _is_manager_class(plan, function.owner)
    )


def _is_manager_class(plan: Plan, cls: Class) -> bool:
    return find_method(plan.flow, cls, "__enter__") is not None


def _runs_what_is_given(plan: Plan, statement: Statement) -> bool:
    """Whether a call in a ``with`` statement may run the engine through what its function, or one around it, is given."""
    inner = (c for c in plan.tree.calls if statement.order < plan.tree.statement(c).order <= statement.last_order)
    return any(_is_given(plan, call) for call in inner)


def _is_given(plan: Plan, call: cst.Call) -> bool:
    function: Function | None = plan.function_of(call)
    if not isinstance(call.func, cst.Name) or plan.flow.callee(call) is not None:
        return False
    while function is not None and call.func.value not in function.params:
        function = function.parent
    if function is None or plan.tags(call.func):
        return False
    bindings = plan.flow.by_place.get(("v", id(function), call.func.value), ())
    return not bindings or any(_runs_it(plan, b.value, b.function) for b in bindings)


def _runs_it(plan: Plan, value: Node, function: Function) -> bool:
    """Whether a function that is handed on runs the engine."""
    if isinstance(value, cst.Lambda):
        return any(isinstance(sub, cst.Call) and runs_engine(plan, sub) for sub in descendants(value.body))
    named = plan.flow.function_named(value, function) if isinstance(value, cst.Name | cst.Attribute) else None
    return named is not None and any(runs_engine(plan, call) for call in calls_in(plan).get(named, ()))


def _is_off(node: Node) -> bool:
    """``autocast(enabled=False)``."""
    given = [arg for arg in node.args if dotted(arg.value) == "False"] if isinstance(node, cst.Call) else []
    return any(arg.keyword is None or arg.keyword.value == "enabled" for arg in given)


def _within_a_module(plan: Plan, node: Node) -> bool:
    """Whether a use stands in a module's own code: what runs inside of the engine's forward is left as it is."""
    statement = plan.tree.statement(node)
    function = plan.tree.function_of_node.get(statement.node) if isinstance(statement.node, cst.FunctionDef) else None
    function = function or statement.function
    cls = function.class_seen
    if cls is None or find_method(plan.flow, cls, "forward") is None:
        return False
    return not any(runs_engine(plan, call) or _is_given(plan, call) for call in calls_in(plan).get(function, ()))
