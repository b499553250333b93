"""MG502 in other spellings: constants, unions, names of classes, patterns and registrations that ask for the wrapper."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.bindings import bound_values
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import is_ddp_class
from dsmigrate.codemod.steps.wrapper_names import class_name_tests
from dsmigrate.codemod.tree import Function, Node, Statement

ENGINE = "deepspeed.DeepSpeedEngine"
_WHY = "the engine is no DistributedDataParallel"


def run(plan: Plan) -> None:
    """Let every test that asks for DistributedDataParallel know the engine; what cannot be followed is marked."""
    for node, statement in _mentions(plan):
        parent = plan.tree.parent[node]
        if isinstance(parent, cst.Element):
            _collection(plan, plan.tree.parent[parent], statement)
        elif isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.BitOr):
            _union(plan, parent, statement)
        elif isinstance(parent, cst.Comparison | cst.ComparisonTarget):
            _comparison(plan, parent if isinstance(parent, cst.Comparison) else plan.tree.parent[parent], statement)
        elif isinstance(parent, cst.MatchClass) or _is_registered(plan, node):
            _exchange(plan, node, statement)
    for call in plan.tree.calls:
        _named_class(plan, call)
    for test, text in class_name_tests(plan):
        if _is_free(plan, test):
            plan.edits.replace(test, text)
            _told(plan, plan.tree.statement(test))


def _mentions(plan: Plan) -> Iterator[tuple[Node, Statement]]:
    """The wrapper's class wherever it is a value, with its statement; as far as no other step has dealt with the place."""
    known = plan.imports.local_names("DistributedDataParallel")
    for node, statement in list(plan.tree.statement_of.items()):
        if not isinstance(node, cst.Name | cst.Attribute) or isinstance(statement.node, cst.Import | cst.ImportFrom):
            continue
        last = node.value if isinstance(node, cst.Name) else node.attr.value
        if last in known and is_ddp_class(plan.imports, node) and _is_free(plan, node):
            yield node, statement


def _is_free(plan: Plan, node: Node) -> bool:
    statement = plan.tree.statement(node)
    around = (node, *plan.tree.ancestors(node))
    return statement.node not in plan.edits.statements and not any(one in plan.edits.expressions for one in around)


def _told(plan: Plan, statement: Statement) -> None:
    plan.need("deepspeed")
    plan.converted("MG502", statement, f"the unwrap test asks for {ENGINE} too", _WHY)


def _collection(plan: Plan, found: Node, statement: Statement) -> None:
    """``WRAPPERS = (DataParallel, DDP)``: one more class, unless the places count."""
    if not isinstance(found, cst.Tuple | cst.List | cst.Set):
        return
    if not all(isinstance(e.value, cst.Name | cst.Attribute | cst.StarredElement) for e in found.elements):
        return
    around = plan.tree.parent.get(found)
    if isinstance(around, cst.Assign) and any(isinstance(t.target, cst.Tuple | cst.List) for t in around.targets):
        return
    if isinstance(around, cst.Return | cst.Arg) and not _is_asked(plan, around):
        return

    def add(updated: Node) -> Node:
        assert isinstance(updated, cst.Tuple | cst.List | cst.Set)
        *others, last = updated.elements
        comma = others[-1].comma if others else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        more = cst.Element(cst.parse_expression(ENGINE), last.comma if others else cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(elements=[*others, last.with_changes(comma=comma), more])

    plan.edits.replace(found, add)
    _told(plan, statement)


def _is_asked(plan: Plan, around: Node) -> bool:
    """Whether an argument is one of ``isinstance``, or of what makes a collection of it."""
    call = plan.tree.parent.get(around)
    return isinstance(call, cst.Call) and dotted(call.func) in (
        "isinstance", "issubclass", "tuple", "list", "set", "frozenset", "any",
    )  # fmt: skip


def _union(plan: Plan, node: Node, statement: Statement) -> None:
    """``isinstance(model, DataParallel | DDP)``; not in an annotation."""
    for outer in plan.tree.ancestors(node):
        if isinstance(outer, cst.Annotation | cst.Subscript):
            return
        if not isinstance(outer, cst.BinaryOperation):
            break
        node = outer
    plan.edits.replace(node, f"{plan.code(node)} | {ENGINE}")
    _told(plan, statement)


def _comparison(plan: Plan, node: Node, statement: Statement) -> None:
    """``model.__class__ is DDP``, ``DDP == type(model)``: a test for one of two classes."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return
    operator, sides = node.comparisons[0].operator, (node.left, node.comparisons[0].comparator)
    asked = next((side for side in sides if gives_class(plan, side, statement.function)), None)
    word = {cst.Is: "in", cst.Equal: "in", cst.IsNot: "not in", cst.NotEqual: "not in"}.get(type(operator))
    if asked is None or word is None:
        return
    other = sides[0] if asked is sides[1] else sides[1]
    plan.edits.replace(node, f"{plan.code(asked)} {word} ({plan.code(other)}, {ENGINE})")
    _told(plan, statement)


def gives_class(plan: Plan, node: Node, function: Function) -> bool:
    """``type(model)``, ``model.__class__``, or a name for one of them."""
    if isinstance(node, cst.Call):
        return dotted(node.func) == "type" and len(node.args) == 1
    if isinstance(node, cst.Attribute) and node.attr.value == "__class__":
        return True
    values = bound_values(plan, node, function) if isinstance(node, cst.Name) else []
    return bool(values) and all(not isinstance(v, cst.Name) and gives_class(plan, v, f) for v, f in values)


def _is_registered(plan: Plan, node: Node) -> bool:
    """``@unwrap.register`` of ``functools.singledispatch``: for the class as an argument, or in the annotation."""
    parent = plan.tree.parent[node]
    call = plan.tree.parent.get(parent)
    if isinstance(parent, cst.Arg):
        return (
            isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "register"
        )
    function = plan.tree.statement(node).node
    if not isinstance(parent, cst.Annotation) or not isinstance(function, cst.FunctionDef):
        return False
    return any((dotted(each.decorator) or "").endswith(".register") for each in function.decorators)


def _exchange(plan: Plan, node: Node, statement: Statement) -> None:
    """A place for one class only: the engine's takes it, as long as no model and no other script stays with DDP."""
    if plan.kept_wraps or plan.part_of(statement) is not plan.tree.parts[0]:
        plan.todo("MG502", statement, f"this asks for DistributedDataParallel: let it ask for {ENGINE} too", _WHY)
        return
    plan.edits.replace(node, ENGINE)
    _told(plan, statement)


def _named_class(plan: Plan, call: cst.Call) -> None:
    """``isinstance(model, wrapper)`` with a name that stands for the one class."""
    if dotted(call.func) not in ("isinstance", "issubclass") or len(call.args) != 2:
        return
    tested = call.args[1].value
    if is_ddp_class(plan.imports, tested) or not isinstance(tested, cst.Name | cst.Attribute | cst.Call):
        return
    statement = plan.tree.statement(call)
    values = _given(plan, tested) if isinstance(tested, cst.Call) else _values(plan, tested, statement.function)
    if _is_free(plan, tested) and any(is_ddp_class(plan.imports, value) for value in values):
        plan.edits.replace(tested, f"({plan.code(tested)}, {ENGINE})")
        _told(plan, statement)


def _given(plan: Plan, call: cst.Call) -> Iterator[Node]:
    """What a function of the tree returns, a collection's elements one by one."""
    function = plan.flow.callee(call)
    for statement in function.statements if function is not None else ():
        value = statement.node.value if isinstance(statement.node, cst.Return) else None
        elements = value.elements if isinstance(value, cst.Tuple | cst.List) else ()
        yield from (element.value for element in elements)
        if value is not None:
            yield value


def _values(plan: Plan, node: Node, function: Function) -> Iterator[Node]:
    """What a name may stand for: what it is bound to, its default, and what a class of the tree gives it in its body."""
    yield from (value for value, _ in bound_values(plan, node, function))
    if isinstance(node, cst.Attribute):
        for statement in plan.tree.statements:
            inner = statement.node
            if (
                isinstance(inner, cst.Assign)
                and statement.up is not None
                and isinstance(statement.up.node, cst.ClassDef)
            ):
                yield from (inner.value for t in inner.targets if dotted(t.target) == node.attr.value)
        return
    scope: Function | None = function
    while scope is not None and isinstance(scope.node, cst.FunctionDef):
        params = scope.node.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            if param.name.value == dotted(node) and param.default is not None:
                yield param.default
        scope = scope.parent
