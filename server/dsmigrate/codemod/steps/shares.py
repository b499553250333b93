"""What an optimizer is given, share by share: parts of the model, and parameters that pass a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.dispatch import find_method
from dsmigrate.codemod.flow import Binding, Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.made_parameters import model_classes
from dsmigrate.codemod.steps.picked import ALL, Base, Formula, atom, both, either, fails
from dsmigrate.codemod.steps.picking import Variables, base_of, formula_of
from dsmigrate.codemod.steps.sites import short
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_THROUGH = frozenset({"list", "tuple", "iter", "sorted", "set", "chain", "itertools.chain"})
_GIVES = ("parameters", "named_parameters")
_ADDS = ("append", "extend", "insert")
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Share:
    """Parameters that an optimizer owns; ``formula`` is None where nothing is known of them."""

    text: str
    formula: Formula | None


@dataclass(frozen=True, slots=True)
class _Source:
    """Parameters that code goes over: those of a part of the model that pass a formula; named where names come with them."""

    base: Base
    formula: Formula
    is_named: bool


def shares_of(plan: Plan, params: Node, where: Statement) -> list[Share]:
    """The shares that the first argument of an optimizer is put together from."""
    return list(_shares(plan, params, where, (), _DEPTH))


def _shares(plan: Plan, node: Node, where: Statement, seen: tuple[Place, ...], depth: int) -> Iterator[Share]:
    inner: Sequence[Node] | None = None
    if isinstance(node, cst.List | cst.Tuple):
        inner = [element.value for element in node.elements]
    elif isinstance(node, cst.Dict):
        inner = [e.value for e in node.elements if isinstance(e, cst.DictElement) and _is_params(e.key)] or None
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        inner = [node.left, node.right]
    elif isinstance(node, cst.IfExp):
        inner = [node.body, node.orelse]
    elif isinstance(node, cst.Call):
        yield from _of_call(plan, node, where, seen, depth)
        return
    elif isinstance(node, cst.ListComp | cst.GeneratorExp):
        yield Share(f"what {short(plan.code(node))} picks", _of_comprehension(plan, node, where))
        return
    elif isinstance(node, cst.Name):
        yield from _of_name(plan, node, where, seen, depth)
        return
    elif (base := base_of(plan, node, where)) is not None and base.path:
        yield Share(short(plan.code(node)), atom("part", base.path))
        return
    if inner is None:
        yield Share(short(plan.code(node)), None)
    for each in inner or ():
        yield from _shares(plan, each, where, seen, depth)


def _is_params(key: Node) -> bool:
    return isinstance(key, cst.SimpleString) and key.evaluated_value == "params"


def _of_call(plan: Plan, call: cst.Call, where: Statement, seen: tuple[Place, ...], depth: int) -> Iterator[Share]:
    name = dotted(call.func)
    if name in _THROUGH:
        for arg in call.args:
            if arg.keyword is None:
                yield from _shares(plan, arg.value, where, seen, depth)
        return
    if name == "dict":
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "params":
                yield from _shares(plan, arg.value, where, seen, depth)
        return
    if (parts := _parts_of_loop(plan, call, where)) is not None:
        yield from parts
        return
    source = _source(plan, call, where, depth)
    if source is not None:
        base = source.base
        text = short(plan.code(call.func.value)) if isinstance(call.func, cst.Attribute) else short(plan.code(call))
        yield Share(text, both(_under(base), source.formula))
        return
    callee = called_of_model(plan, call)
    returned = plan.flow.by_place.get(plan.flow.returned(callee), ()) if callee is not None and depth else ()
    for binding in returned:
        yield from _shares(plan, binding.value, binding.statement, seen, depth - 1)
    if not returned:
        yield Share(short(plan.code(call)), None)


def called_of_model(plan: Plan, call: cst.Call) -> Function | None:
    """The function of the tree that a call runs, methods of the trained model included."""
    callee = plan.flow.callee(call)
    if callee is not None or not isinstance(call.func, cst.Attribute) or not plan.is_ours(call.func.value):
        return callee
    found = (find_method(plan.flow, cls, call.func.attr.value) for cls in model_classes(plan))
    return next((method for method in found if method is not None), None)


def _parts_of_loop(plan: Plan, call: cst.Call, where: Statement) -> list[Share] | None:
    """``part.parameters()`` in ``for part in (model.body, model.head)``."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value in _GIVES else None
    loop = _loop_over(owner, where) if isinstance(owner, cst.Name) else None
    if loop is None or dotted(loop.target) != dotted(owner) or not isinstance(loop.iter, cst.Tuple | cst.List):
        return None
    bases = [(element.value, base_of(plan, element.value, where)) for element in loop.iter.elements]
    return [Share(short(plan.code(node)), None if base is None else _under(base)) for node, base in bases]


def _under(base: Base) -> Formula:
    return atom("part", base.path) if base.path else ALL


# -- lists that were made before ---------------------------------------------------------------------------------------


def _of_name(plan: Plan, name: cst.Name, where: Statement, seen: tuple[Place, ...], depth: int) -> Iterator[Share]:
    if (loop := _loop_over(name, where)) is not None:
        yield Share(f"what is picked from {short(plan.code(loop.iter))}", _of_loop(plan, name, loop, where))
        return
    place = plan.flow.place(name, where.function)
    if place is None or place in seen:
        return
    bindings = plan.flow.by_place.get(place, ())
    given = [(b.value, b.statement) for b in bindings if b.index is None and b.kind in ("assign", "argument")]
    added = list(_added(plan, place))
    empty = any(isinstance(value, cst.List | cst.Dict) and not value.elements for value, _ in given)
    if not depth or not given or len(given) < len(bindings) or (empty and not added) or _leaks(plan, place, bindings):
        yield Share(name.value, None)
        return
    for value, statement in (*given, *added):
        yield from _shares(plan, value, statement, (*seen, place), depth - 1)


def _added(plan: Plan, place: Place) -> Iterator[tuple[Node, Statement]]:
    """What ``xs += …``, ``xs.append(…)`` and ``xs[0]["params"].append(…)`` put into a list."""
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.AugAssign) and plan.flow.place(node.target, statement.function) == place:
            yield node.value, statement
        call = node.value if isinstance(node, cst.Expr) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.args:
            if call.func.attr.value in _ADDS and _place_of_root(plan, call.func.value, statement.function) == place:
                yield call.args[-1].value, statement


def _place_of_root(plan: Plan, node: Node, function: Function) -> Place | None:
    while isinstance(node, cst.Subscript):
        node = node.value
    return plan.flow.place(node, function)


def _leaks(plan: Plan, place: Place, bindings: Sequence[Binding]) -> bool:
    """Whether a list is filled in a way that is not followed: by another function, or by a choice between lists."""
    functions = {binding.function for binding in bindings}
    for function in functions:
        for statement in function.statements:
            for call in (
                descendants(statement.node) if not isinstance(statement.node, cst.BaseCompoundStatement) else ()
            ):
                if isinstance(call, cst.IfExp):
                    sides: list[Node] = [call.body, call.orelse]
                elif isinstance(call, cst.Call) and (callee := plan.flow.callee(call)) is not None:
                    sides = [arg.value for arg in call.args] if _fills(callee) else []
                else:
                    continue
                if any(isinstance(side, cst.Name) and plan.flow.place(side, function) == place for side in sides):
                    return True
    return False


def _fills(function: Function) -> bool:
    """Whether a function puts something into a list that it is given."""
    return any(
        isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value in _ADDS
        and (dotted(sub.func.value) or "") in function.params
        for sub in descendants(function.node)
    )  # fmt: skip


# -- what is picked one by one -------------------------------------------------------------------------------------------


def _of_comprehension(plan: Plan, node: cst.ListComp | cst.GeneratorExp, where: Statement) -> Formula | None:
    """``[p for n, p in model.named_parameters() if …]``, and groups of one parameter each."""
    inner = node.for_in
    source = _source(plan, inner.iter, where, _DEPTH) if inner.inner_for_in is None else None
    variables = _variables(inner.target, source)
    if source is None or variables is None or not _is_parameter(plan, node.elt, variables):
        return None
    tests = [formula_of(plan, test.test, where, variables) for test in inner.ifs]
    return both(_under(source.base), source.formula, *tests)


def _is_parameter(plan: Plan, node: Node, variables: Variables) -> bool:
    if isinstance(node, cst.List) and len(node.elements) == 1:
        return _is_parameter(plan, node.elements[0].value, variables)
    if isinstance(node, cst.Dict):
        values = [e.value for e in node.elements if isinstance(e, cst.DictElement) and _is_params(e.key)]
        return len(values) == 1 and _is_parameter(plan, values[0], variables)
    return plan.code(node) == variables.parameter


def _variables(target: Node, source: _Source | None) -> Variables | None:
    """What a loop's variables stand for: ``n, p``, ``p``, or ``pair`` of which ``pair[0]`` is the name."""
    if isinstance(target, cst.Tuple):  # of enumerate(…), and of zip(…) as far as it goes
        last = target.elements[-1].value
        if isinstance(last, cst.Tuple) or (source is not None and not source.is_named):
            return _variables(last, source)
    if source is None:
        return None
    if isinstance(target, cst.Name):
        pair = target.value
        return (
            Variables(f"{pair}[0]", f"{pair}[1]", source.base)
            if source.is_named
            else Variables(None, pair, source.base)
        )
    names = [dotted(element.value) for element in target.elements] if isinstance(target, cst.Tuple) else []
    name, parameter = names if len(names) == 2 else (None, None)
    return Variables(name, parameter, source.base) if parameter is not None else None


def _loop_over(name: cst.Name, where: Statement) -> cst.For | None:
    for outer in where.enclosing():
        if isinstance(outer.node, cst.For):
            if any(isinstance(sub, cst.Name) and sub.value == name.value for sub in descendants(outer.node.target)):
                return outer.node
    return None


def _of_loop(plan: Plan, name: cst.Name, loop: cst.For, where: Statement) -> Formula | None:
    """What reaches a statement in a loop over parameters: the branches to it, and those that ``continue`` before it."""
    source = _source(plan, loop.iter, where, _DEPTH)
    variables = _variables(loop.target, source)
    reached = _path(plan, loop, where, variables) if variables is not None else None
    if source is None or variables is None or name.value != variables.parameter or reached is None:
        return None
    left: list[Formula] = []
    for statement in where.function.statements:
        if isinstance(statement.node, cst.Continue | cst.Break) and statement.order < where.order:
            around = next((o.node for o in statement.enclosing() if isinstance(o.node, cst.For | cst.While)), None)
            path = _path(plan, loop, statement, variables) if around is loop else None
            if around is loop and (path is None or isinstance(statement.node, cst.Break)):
                return None
            if path is not None:
                left.append(path)
    return both(_under(source.base), source.formula, reached, fails(either(*left)))


def _path(plan: Plan, loop: cst.For, statement: Statement, variables: Variables) -> Formula | None:
    """The tests on the way from a loop to a statement in it."""
    tests: list[Formula] = []
    is_within = False
    for node, branch in branches_to(statement):
        if is_within:
            if not isinstance(node, cst.If):
                return None
            test = formula_of(plan, node.test, statement, variables)
            tests.append(test if branch == "body" else fails(test))
        is_within = is_within or node is loop
    return both(*tests)


# -- what is gone over -----------------------------------------------------------------------------------------------------


def _source(plan: Plan, node: Node, where: Statement, depth: int) -> _Source | None:
    """``model.named_parameters()``, ``enumerate(…)`` and ``list(…)`` of it, what is filtered from it, names for all of these."""
    if not depth:
        return None
    if isinstance(node, cst.Name):
        place = plan.flow.place(node, where.function)
        bindings = plan.flow.by_place.get(place, []) if place is not None else []
        before = [b for b in bindings if b.statement.order < where.order] or bindings
        last = max(before, key=lambda b: b.statement.order, default=None)
        if last is None or last.index is not None or last.kind not in ("assign", "argument"):
            return None
        return _source(plan, last.value, last.statement, depth - 1)
    if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.DictComp):
        return _filtered(plan, node, where, depth)
    if not isinstance(node, cst.Call):
        return None
    name = dotted(node.func)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _GIVES:
        base = base_of(plan, node.func.value, where)
        return None if base is None else _Source(base, ALL, node.func.attr.value == "named_parameters")
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "items" and not node.args:
        return _source(plan, node.func.value, where, depth - 1)
    if name in ("list", "tuple", "iter", "enumerate", "dict", "sorted", "reversed", "tqdm") and node.args:
        return _source(plan, node.args[0].value, where, depth - 1)
    if name == "filter" and len(node.args) == 2:
        return _by_lambda(plan, node.args[0].value, _source(plan, node.args[1].value, where, depth - 1), where)
    return None


def _by_lambda(plan: Plan, test: Node, source: _Source | None, where: Statement) -> _Source | None:
    if source is None or not isinstance(test, cst.Lambda) or len(test.params.params) != 1:
        return None
    variables = _variables(test.params.params[0].name, source)
    if variables is None:
        return None
    return _Source(source.base, both(source.formula, formula_of(plan, test.body, where, variables)), source.is_named)


def _filtered(
    plan: Plan, node: cst.ListComp | cst.GeneratorExp | cst.DictComp, where: Statement, depth: int
) -> _Source | None:
    """``[(n, p) for n, p in … if …]``, ``[pair for pair in … if …]``, ``{n: p for n, p in … if …}``."""
    inner = node.for_in
    source = _source(plan, inner.iter, where, depth - 1) if inner.inner_for_in is None else None
    variables = _variables(inner.target, source)
    if source is None or variables is None:
        return None
    tests = [formula_of(plan, test.test, where, variables) for test in inner.ifs]
    if isinstance(node, cst.DictComp):
        is_named = (plan.code(node.key), plan.code(node.value)) == (variables.name, variables.parameter)
        is_known = is_named
    else:
        text = plan.code(node.elt).strip("()")
        is_named = source.is_named and text in (f"{variables.name}, {variables.parameter}", dotted(inner.target))
        is_known = is_named or text == variables.parameter
    return _Source(source.base, both(source.formula, *tests), is_named) if is_known else None
