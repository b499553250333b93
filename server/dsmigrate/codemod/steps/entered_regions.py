"""What enters an autocast region without being a call of autocast: managers and classes of the project, tables, decorators."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.dispatch import find_method
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import AUTOCAST_NAMES
from dsmigrate.codemod.steps.reaching import calls_in
from dsmigrate.codemod.tree import Class, Function, Node, Statement

_DEPTH = 7

Origin = tuple[Node, bool]
"""An expression that names torch's autocast, and whether it is entered in every case."""


def names_autocast(plan: Plan, node: Node) -> bool:
    """Whether an expression names torch's autocast itself, imports taken into account, or gets it by ``getattr``."""
    if isinstance(node, cst.Call) and dotted(node.func) == "getattr" and len(node.args) > 1:
        name = node.args[1].value
        is_named = isinstance(name, cst.SimpleString) and name.evaluated_value == "autocast"
        return is_named and plan.imports.is_from_package(node.args[0].value, "torch")
    return any("." in name for name in plan.imports.names(node) & AUTOCAST_NAMES)


def stands_for_autocast(plan: Plan, node: Node, function: Function) -> bool:
    """Whether what a ``with`` statement or a decorator is given may enter a region of torch's autocast."""
    known: dict[Node, bool] = plan.facts.setdefault("stands_for_autocast", {})
    if node not in known:
        known[node] = any(True for _ in autocast_origins(plan, node, function))
    return known[node]


def only_call(plan: Plan, node: Node, function: Function) -> cst.Call | None:
    """The one call of autocast that a manager of the project enters whenever it is entered itself."""
    found = list(autocast_origins(plan, node, function))
    if len(found) != 1 or not found[0][1] or not isinstance(found[0][0], cst.Call):
        return None
    return found[0][0]


def decorators_of(plan: Plan, function: Function) -> Iterator[Node]:
    """The decorators of a function that run it in a region."""
    if isinstance(function.node, cst.FunctionDef) and function.parent is not None:
        for decorator in function.node.decorators:
            if stands_for_autocast(plan, decorator.decorator, function.parent):
                yield decorator.decorator


def first_inside(plan: Plan, statement: Statement) -> Statement:
    """The first statement in the function that a decorator runs in a region; a ``with`` statement stands for itself."""
    function = plan.tree.function_of_node.get(statement.node) if isinstance(statement.node, cst.FunctionDef) else None
    return function.statements[0] if function is not None and function.statements else statement


def autocast_origins(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> Iterator[Origin]:
    """The expressions naming autocast that another one may come from."""
    if depth == 0:
        return
    if isinstance(node, cst.IfExp | cst.BooleanOperation):
        sides = (node.body, node.orelse) if isinstance(node, cst.IfExp) else (node.left, node.right)
        for side in sides:
            yield from _unsure(autocast_origins(plan, side, function, depth - 1))
    elif isinstance(node, cst.Dict):
        for element in node.elements:
            yield from _unsure(autocast_origins(plan, element.value, function, depth - 1))
    elif isinstance(node, cst.Subscript):
        yield from _unsure(_of_name(plan, node, function, depth))
        yield from _unsure(autocast_origins(plan, node.value, function, depth - 1))
    elif isinstance(node, cst.Lambda):
        yield from autocast_origins(plan, node.body, function, depth - 1)
    elif isinstance(node, cst.NamedExpr):
        yield from autocast_origins(plan, node.value, function, depth - 1)
    elif isinstance(node, cst.Call):
        yield from _of_call(plan, node, function, depth)
    elif isinstance(node, cst.Name | cst.Attribute):
        yield from _of_name(plan, node, function, depth)


def _unsure(origins: Iterator[Origin]) -> Iterator[Origin]:
    yield from ((node, False) for node, _ in origins)


def _of_call(plan: Plan, node: cst.Call, function: Function, depth: int) -> Iterator[Origin]:
    if names_autocast(plan, node.func):
        yield node, True
        return
    if "functools.partial" in plan.imports.names(node.func) and node.args:
        yield from _unsure(autocast_origins(plan, node.args[0].value, function, depth - 1))
        return
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
        yield from _unsure(autocast_origins(plan, node.func.value, function, depth - 1))
    name = dotted(node.func)
    cls = plan.flow.class_named(name, function) if name is not None else None
    if cls is not None:
        yield from _of_class(plan, cls)
        return
    callees = plan.flow.callees(node)
    for callee in callees:
        yield from _of_function(plan, callee, depth)
    if not callees:
        yield from autocast_origins(plan, node.func, function, depth - 1)


def _of_function(plan: Plan, callee: Function, depth: int) -> Iterator[Origin]:
    """What a call of a function enters or gives."""
    if is_manager(callee):
        yield from _entered_by(plan, callee, depth)
        return
    given = plan.flow.by_place.get(plan.flow.returned(callee), ())
    for binding in given:
        found = autocast_origins(plan, binding.value, binding.function, depth - 1)
        yield from found if len(given) == 1 and binding.index is None else _unsure(found)


def _entered_by(plan: Plan, function: Function, depth: int) -> Iterator[Origin]:
    """The regions that a function enters in its body: by ``with``, or handed to a stack or entered by hand."""
    of_items: set[Node] = set()
    for statement in plan.tree.withs:
        if statement.function is not function:
            continue
        assert isinstance(statement.node, cst.With)
        for item in statement.node.items:
            of_items.add(item.item)
            found = autocast_origins(plan, item.item, function, depth - 1)
            yield from found if _is_reached_always(statement) else _unsure(found)
    for call in calls_in(plan).get(function, ()):
        if call not in of_items and names_autocast(plan, call.func):
            yield call, False
    for inner in function.inner.values():
        yield from _entered_by(plan, inner, depth - 1) if depth > 1 else ()


def _is_reached_always(statement: Statement) -> bool:
    return not any(not isinstance(outer.node, cst.With | cst.Try) for outer in statement.enclosing())


def _of_class(plan: Plan, cls: Class) -> Iterator[Origin]:
    """The regions that an object of a class enters: it is one, or its ``__enter__`` makes or enters one."""
    for base in cls.node.bases:
        if names_autocast(plan, base.value):
            yield base.value, False
    methods = [find_method(plan.flow, cls, name) for name in ("__enter__", "__init__")]
    if methods[0] is None:
        return
    for method in methods:
        for call in calls_in(plan).get(method, ()) if method is not None else ():
            if names_autocast(plan, call.func):
                yield call, _is_reached_always(plan.tree.statement(call)) and _is_entered_in(plan, methods[0])


def _is_entered_in(plan: Plan, method: Function) -> bool:
    return not any(isinstance(s.node, cst.If) for s in method.statements) and any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "__enter__"
        for call in calls_in(plan).get(method, ())
    )


def _of_name(plan: Plan, node: Node, function: Function, depth: int) -> Iterator[Origin]:
    if not isinstance(node, cst.Subscript) and names_autocast(plan, node):
        yield node, False
        return
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    for binding in bindings:
        if binding.index is None and binding.kind != "for":
            found = autocast_origins(plan, binding.value, binding.function, depth - 1)
            yield from found if len(bindings) == 1 else _unsure(found)
    if not bindings:
        named = plan.flow.function_named(node, function)
        if named is not None:  # a decorator, or the function that one gives
            yield from _entered_by(plan, named, depth)


def is_manager(function: Function) -> bool:
    """Whether a function is a context manager, by ``contextlib.contextmanager``."""
    return isinstance(function.node, cst.FunctionDef) and any(
        (dotted(d.decorator) or "").rpartition(".")[2] == "contextmanager" for d in function.node.decorators
    )
