"""Expressions: what each comes to, with the names and objects as they are at this moment of the run."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dsmigrate.codemod.analysis.calls import define_function, given
from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    MAYBE,
    TRUE,
    Condition,
    Literal,
    both,
    either,
    negate,
    options_of,
)
from dsmigrate.codemod.analysis.containers import (
    added,
    append,
    dict_item,
    extended,
    is_hashable,
    is_open,
    is_unordered,
    list_item,
    put_item,
)
from dsmigrate.codemod.analysis.iteration import each_item, unpacked
from dsmigrate.codemod.analysis.keys import is_of_data, key_of
from dsmigrate.codemod.analysis.library import (
    call_library,
    contained_in,
    is_unread,
    item_of,
    item_written,
    operated_library,
)
from dsmigrate.codemod.analysis.machine import SIFTED, UNROLLED, Frame, Given, Machine
from dsmigrate.codemod.analysis.narrowing import left_of_bound, narrowed
from dsmigrate.codemod.analysis.norms import norm_operated
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.tensors import changed_in_place
from dsmigrate.codemod.analysis.texts import contains, equals
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    UNBOUND,
    Bound,
    Choice,
    Const,
    Expr,
    Kind,
    Lazy,
    Lib,
    Member,
    Obj,
    Super,
    Tensor,
    TensorKind,
    Tup,
    Value,
    each,
    joined_tensor,
    loops_of,
    may_vary,
)
from dsmigrate.codemod.program.module import names_of

_LONG = 4096
"""Characters, items or bits of a constant that is worked out; a longer one stays an expression."""


# -- truth ---------------------------------------------------------------------------------------------------------


def truth(run: Machine, value: Value) -> Condition:
    """Under which condition a value counts as true."""
    match value:
        case Const():
            return TRUE if value.value else FALSE
        case Choice():
            return either(*(both(condition, run.truth(option)) for condition, option in options_of(value)))
        case Expr(op="not"):
            return negate(run.truth(value.args[0]))
        case Expr(op="and"):
            return both(*(run.truth(arg) for arg in value.args))
        case Expr(op="or"):
            return either(*(run.truth(arg) for arg in value.args))
        case Expr(op="bool"):
            return run.truth(value.args[0])
        case Expr(op="condition"):
            return value.args[0]  # type: ignore[no-any-return]
        case Expr():
            return Literal(value)
        case Tup():
            return TRUE if value.items else FALSE
        case Obj(kind=Kind.LIST | Kind.DICT | Kind.SET):
            if is_open(value):
                return Literal(Expr("filled", value, loops=frozenset(run.loops)))
            return TRUE if value.fields else FALSE
        case Obj(kind=Kind.INSTANCE) if value.cls is not None:
            for name in ("__bool__", "__len__"):
                found = looked_up(value.cls, name)
                if found is not None and isinstance(found[0], Obj):
                    return run.truth(run.call_member(value, name, Given(), value.node or found[0].node or ast.Pass()))
            return TRUE
        case Tensor():
            return Literal(Expr("true", value, varies=value.varies, loops=frozenset(run.loops)))
        case Member():
            return Literal(Expr("field", value.of, value.name, varies=may_vary(value.of), loops=frozenset(run.loops)))
        case Lib() if is_unread(value):
            return Literal(Expr("true", value))
        case Lib() | Obj() | Bound() | Super() | Lazy():
            return TRUE
    return MAYBE


def from_condition(condition: Condition) -> Value:
    """The value of a test."""
    if condition is TRUE:
        return TRUE_VALUE
    if condition is FALSE:
        return FALSE_VALUE
    if isinstance(condition, Literal):
        return condition.atom if condition.holds else Expr("not", condition.atom)
    return Expr("condition", condition, varies=condition.varies, loops=condition.loops)


# -- names and places ------------------------------------------------------------------------------------------------


def _name(run: Machine, node: ast.Name) -> Value:
    found = run.settle(left_of_bound(run.frame, node.id, lookup(run, run.frame, node.id)))
    return Expr("unbound", node.id) if found is UNBOUND else found


def lookup(run: Machine, frame: Frame, name: str) -> Value:
    """What a name is bound to, from the inside out."""
    own: Frame | None = frame
    names = frame.names
    found: Value | None
    if names is not None and name in names.outer:
        own = None
    while own is not None:
        if own.names is None and own.outer is None:
            break
        if own.names is None or name in own.names.local:
            found = own.obj.own.get(name) if own is frame else own.obj.get(name)
            if found is not None:
                return found
            if own.names is not None and own is frame:
                return UNBOUND if not isinstance(own.node, ast.ListComp) else NONE
        own = own.outer
        while own is not None and own.is_class:
            own = own.outer
    top = frame.top
    found = top.get(name)
    if found is not None:
        return found
    if top.data["stars"]:
        found = run.member_of_module(top, name)
        is_builtin = isinstance(found, Lib) and name in _BUILTINS and name not in _REBOUND
        if not is_builtin and not (isinstance(found, Expr) and found.op == "unfound"):
            return found
    if name in _BUILTINS:
        return Lib(f"builtins.{name}")
    return Expr("unfound", top.data["name"], name)


_BUILTINS = frozenset(dir(builtins))
_REBOUND = frozenset(
    ["abs", "all", "any", "bool", "bytes", "compile", "complex", "divmod", "float", "int", "max", "min", "object", "open", "pow", "range", "round", "str", "sum"]
)  # fmt: skip
"""The builtins of which ``from … import *`` of torch, NumPy, math or os may bring another."""


def _attribute(run: Machine, node: ast.Attribute) -> Value:
    value = run.attribute(run.value(node.value), node.attr, node)
    if isinstance(node.value, ast.Name):
        value = left_of_bound(run.frame, f"{node.value.id}.{node.attr}", value)
    return run.settle(value)


def _subscript(run: Machine, node: ast.Subscript) -> Value:
    of, key = run.value(node.value), run.value(node.slice)
    return run.settle(run.item(of, key, node))


def item(run: Machine, of: Value, key: Value, node: ast.AST) -> Value:
    """What a subscript gives."""
    of = run.settle(of)
    if isinstance(of, Choice):
        return choose((condition, run.item(option, key, node)) for condition, option in options_of(of))
    if isinstance(key, Choice) and isinstance(of, Obj | Tup):
        return choose((condition, run.item(of, option, node)) for condition, option in options_of(key))
    match of:
        case Tup():
            return _of_tuple(run, of.items, key, node)
        case Const() if isinstance(key, Const):
            try:
                return Const(of.value[key.value])
            except Exception:  # noqa: BLE001 - of whatever it is
                return run.unread(node, [of, key])
        case Obj(kind=Kind.DICT):
            return dict_item(run, of, key, node)
        case Obj(kind=Kind.LIST):
            return list_item(run, of, key, node)
        case Obj(kind=Kind.INSTANCE) if of.cls is not None:
            found = looked_up(of.cls, "__getitem__")
            if found is not None and isinstance(found[0], Obj):
                return run.call_member(of, "__getitem__", Given((key,)), node)
        case Tensor(kind=TensorKind.PARAMETER):
            return Tensor(of=of.of, forwards=of.forwards, varies=of.varies)
        case Tensor():
            if isinstance(key, Tup) and any(not _is_whole(one) for one in key.items[1:]):
                return replace(of, turned=True)
            return of.part(key.value) if isinstance(key, Const) and is_hashable(key.value) else of
        case Expr():
            written = (
                run.shadow(of).get(("item", key.value)) if isinstance(key, Const) and is_hashable(key.value) else None
            )
            if written is not None:
                return run.settle(written)
    return item_of(run, of, key, node)


def _is_whole(key: Value) -> bool:
    """Whether a key takes a dimension as it is, or adds one: ``:``, ``...``, ``None``."""
    if isinstance(key, Expr) and key.op == "slice":
        return all(part == NONE for part in key.args)
    return key in (NONE, Const(...))


def _of_tuple(run: Machine, items: tuple[Value, ...], key: Value, node: ast.AST) -> Value:
    if isinstance(key, Const) and isinstance(key.value, int) and -len(items) <= key.value < len(items):
        return items[key.value]
    if isinstance(key, Expr) and key.op == "slice" and all(isinstance(part, Const) for part in key.args):
        return Tup(items[slice(*(part.value for part in key.args))])
    return choose((MAYBE, one) for one in items) if items else run.unread(node, [key])


def set_item(run: Machine, node: ast.Subscript, of: Value, key: Value, value: Value) -> None:
    """Assign to an item."""
    of = run.settle(of)
    if isinstance(of, Lib):
        call_library(run, f"{of.name}.__setitem__", Given((key, value)), node)
        return
    for condition, option in options_of(of):
        if not isinstance(option, Obj | Expr | Tensor):
            continue
        item_written(run, option, key, value, node)
        if isinstance(node.value, ast.Name) and _is_part_of_loss(run, node.value, option, value):
            run.bind_name(node.value.id, operated(run, ast.Add(), of, value, node))
        elif isinstance(option, Obj):
            if option.kind is Kind.INSTANCE and option.cls is not None:
                found = looked_up(option.cls, "__setitem__")
                if found is not None and isinstance(found[0], Obj):
                    run.call_member(option, "__setitem__", Given((key, value)), node)
                    continue
            put_item(run, option, key, value, condition=condition)
        elif isinstance(option, Expr) and isinstance(key, Const):
            holder = run.shadow(option)
            holder.own.setdefault(("item", key.value), Expr("item", option, key.value, varies=option.varies))
            now = holder.at(("item", key.value))
            run.put(holder, ("item", key.value), choose([(negate(condition), now), (condition, value)]))


def _is_part_of_loss(run: Machine, name: ast.Name, of: Value, value: Value) -> bool:
    """Whether something of a forward is put into a tensor that a name of this function holds: ``losses[0] = …``."""
    is_own = isinstance(of, Tensor) and of.kind is TensorKind.DATA and name.id in run.frame.obj.own
    return is_own and any(isinstance(one, Tensor) and one.forwards for one in each(value))


def bind(run: Machine, target: ast.expr, value: Value) -> None:
    """Assign to a name, an attribute, an item, or several at once."""
    match target:
        case ast.Name():
            run.bind_name(target.id, value)
        case ast.Attribute():
            run.set_attribute(run.value(target.value), target.attr, value, target)
        case ast.Subscript():
            set_item(run, target, run.value(target.value), run.value(target.slice), value)
        case ast.Tuple() | ast.List():
            for element, item_ in zip(target.elts, unpacked(run, target, value), strict=True):
                bind(run, element, item_)
        case ast.Starred():
            bind(run, target.value, value)


def delete(run: Machine, node: ast.expr) -> None:
    """Delete a name, an attribute or an item."""
    match node:
        case ast.Name():
            run.bind_name(node.id, UNBOUND)
        case ast.Attribute():
            for one in each(run.value(node.value)):
                if isinstance(one, Obj):
                    run.put(one, node.attr, UNBOUND)
        case ast.Subscript():
            key = run.value(node.slice)
            for one in each(run.value(node.value)):
                if isinstance(one, Obj) and isinstance(key, Const):
                    run.put(one, key.value, UNBOUND)
        case ast.Tuple() | ast.List():
            for element in node.elts:
                delete(run, element)


# -- operators ---------------------------------------------------------------------------------------------------


_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.BitOr: ("|", operator.or_),
    ast.BitAnd: ("&", operator.and_),
    ast.BitXor: ("^", operator.xor),
    ast.MatMult: ("@", operator.matmul),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}


def _binary(run: Machine, node: ast.BinOp) -> Value:
    return operated(run, node.op, run.value(node.left), run.value(node.right), node)


def operated(run: Machine, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
    """What a binary operator gives."""
    left, right = run.settle(left), run.settle(right)
    tensors = [one for value in (left, right) for one in each(value) if isinstance(one, Tensor)]
    if tensors:
        norm = norm_operated(run, op, left, right)
        joined = joined_tensor(tensors)
        if isinstance(op, ast.Mult | ast.Div) and not all(
            any(isinstance(one, Tensor) for one in each(value)) for value in (left, right)
        ):
            factor = right if any(isinstance(one, Tensor) for one in each(left)) else left
            said = f"{'*' if isinstance(op, ast.Mult) else '/'} {'data' if is_of_data(factor) else key_of(factor)}"
            joined = replace(
                joined,
                given=frozenset().union(*(one.given for one in tensors)),
                factors=joined.factors | {said} if joined.forwards else joined.factors,
            )
        return replace(joined, varies=joined.varies or may_vary(left) or may_vary(right)) if norm is None else norm
    for value, other, first in ((left, right, True), (right, left, False)):
        if isinstance(value, Choice):
            pairs = ((condition, option) for condition, option in options_of(value))
            return choose(
                (condition, operated(run, op, option, other, node) if first else operated(run, op, other, option, node))
                for condition, option in pairs
            )
    symbol, work = _BINARY[type(op)]
    if isinstance(left, Const) and isinstance(right, Const):
        return _worked_out(work, left.value, right.value, Expr(symbol, left, right))
    if isinstance(op, ast.Add | ast.Mult | ast.BitOr):
        found = added(run, op, left, right, node)
        if found is not None:
            return found
    for one, name in ((left, op), (right, op)):
        if isinstance(one, Obj) and one.kind is Kind.INSTANCE and one.cls is not None:
            method = _METHODS.get(type(name))
            found_method = looked_up(one.cls, method) if method else None
            if found_method is not None and isinstance(found_method[0], Obj) and one is left:
                return run.call_member(one, method or "", Given((right,)), node)
    special = operated_library(symbol, left, right)
    if special is not None:
        return special
    return Expr(symbol, _part(left), _part(right), varies=may_vary(left) or may_vary(right))


_METHODS = {ast.Add: "__add__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Sub: "__sub__"}


def _part(value: Value) -> Value:
    return value if isinstance(value, Const | Expr | Lib | Tup | Obj) else Expr("some", varies=may_vary(value))


def _worked_out(work: Callable[[Any, Any], Any], left: Any, right: Any, otherwise: Value) -> Value:
    if work is operator.pow and not (isinstance(right, int) and abs(right) < 64):
        return (
            otherwise
            if not isinstance(left, float) and not isinstance(right, float)
            else _tried(work, left, right, otherwise)
        )
    if work in {operator.mul, operator.lshift} and any(
        isinstance(one, int) and abs(one) > _LONG and not isinstance(one, bool) for one in (left, right)
    ):
        if not all(isinstance(one, int | float) for one in (left, right)) or work is operator.lshift:
            return otherwise
    return _tried(work, left, right, otherwise)


def _tried(work: Callable[[Any, Any], Any], left: Any, right: Any, otherwise: Value) -> Value:
    try:
        found = work(left, right)
    except Exception:  # noqa: BLE001 - whatever the operands do
        return otherwise
    if isinstance(found, str | bytes | tuple) and len(found) > _LONG:
        return otherwise
    return Const(found) if isinstance(found, int | float | str | bool | bytes | complex | type(None)) else otherwise


def augmented(run: Machine, node: ast.AugAssign) -> None:
    """Run ``x += y``."""
    left, right = run.value(node.target), run.value(node.value)
    changed_in_place(run, left, node, "", [right])
    if isinstance(left, Tensor) and left.kind in {TensorKind.PARAMETER, TensorKind.BUFFER}:
        return
    if isinstance(left, Obj) and left.kind in {Kind.LIST, Kind.SET} and isinstance(node.op, ast.Add | ast.BitOr):
        extended(run, left, right, node)
        return
    if isinstance(left, Obj) and left.kind is Kind.DICT and isinstance(node.op, ast.BitOr):
        extended(run, left, right, node)
        return
    run.bind(node.target, operated(run, node.op, left, right, node))


_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


def _unary(run: Machine, node: ast.UnaryOp) -> Value:
    value = run.value(node.operand)
    if isinstance(node.op, ast.Not):
        return from_condition(run.holds(negate(run.truth(value))))
    if isinstance(value, Const):
        work = _UNARY[type(node.op)]
        try:
            return Const(work(value.value))
        except TypeError:
            return Expr("-", value)
    if isinstance(value, Tensor):
        return value if value.kind is TensorKind.DATA else joined_tensor([value])
    if isinstance(value, Expr):
        return Expr("neg" if isinstance(node.op, ast.USub) else "inv", value)
    return value


def _boolean(run: Machine, node: ast.BoolOp) -> Value:
    stops = isinstance(node.op, ast.Or)

    def rest(values: list[ast.expr]) -> Value:
        first, *others = values
        value = run.value(first)
        if not others:
            return value
        condition = run.holds(run.truth(value))
        going = negate(condition) if stops else condition
        if going is FALSE:
            return value
        if going is TRUE:
            return rest(others)
        found: list[Value] = []

        def more() -> Condition:
            found.append(rest(others))
            return TRUE

        mark = run.state.mark()
        with run.assuming(going, first):
            more()
        changes = run.state.changes(mark)
        if changes:
            run.state.undo(mark)
            run.meet([(going, changes), (negate(going), {})], first)
        return _combined(run, value, found[0], condition, stops=stops)

    return rest(node.values)


def _combined(run: Machine, first: Value, second: Value, condition: Condition, *, stops: bool) -> Value:
    """``first or second``, or ``first and second``, where the first decides nothing by itself."""
    plain = isinstance(first, Expr) or (
        isinstance(first, Choice) and all(isinstance(one, Const | Expr) for one in each(first))
    )
    if plain and all(isinstance(one, Const | Expr) for one in each(second)):
        other = run.truth(second)
        if _is_test(first) and all(_is_test(one) for one in each(second)):
            return from_condition(either(condition, other) if stops else both(condition, other))
        if isinstance(first, Expr) and isinstance(second, Const | Expr):
            return Expr("or" if stops else "and", first, second)
    return choose(
        [(condition, first), (negate(condition), second)]
        if stops
        else [(condition, second), (negate(condition), first)]
    )


def _is_test(value: Value) -> bool:
    """Whether a value is a boolean: a comparison, or what is made of those."""
    if isinstance(value, Const):
        return isinstance(value.value, bool)
    return isinstance(value, Expr) and value.op in {
        "==",
        "is",
        "<",
        "<=",
        "in",
        "not",
        "and",
        "or",
        "condition",
        "isinstance",
        "bool",
        "exists",
        "cuda",
    }


def _compare(run: Machine, node: ast.Compare) -> Value:
    left = run.value(node.left)
    found: list[Condition] = []
    single: Value = TRUE_VALUE
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = run.value(comparator)
        single = run.compared(op, left, right)
        found.append(run.truth(single))
        left = right
    if len(found) == 1:
        return single
    return from_condition(both(*found))


_NUMBERS = frozenset(
    {"rank", "local_rank", "world_size", "device_count", "index", "int", "float", "len", "+", "-", "*", "/", "//", "%"}
)
"""What is never None."""


_IDENTICAL = frozenset({Kind.INSTANCE, Kind.LIST, Kind.DICT, Kind.SET})
"""What may equal another one of its kind."""


def compared(run: Machine, op: ast.cmpop, left: Value, right: Value) -> Value:
    """What a comparison gives."""
    left, right = run.settle(left), run.settle(right)
    if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn):
        positive = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}[type(op)]()
        return from_condition(negate(run.truth(run.compared(positive, left, right))))
    for value, other, first in ((left, right, True), (right, left, False)):
        if isinstance(value, Choice):
            tests = [
                (condition, run.truth(run.compared(op, option, other) if first else run.compared(op, other, option)))
                for condition, option in options_of(value)
            ]
            if (
                len({test for _, test in tests}) > 1
                and isinstance(op, _ORDERS)
                and all(isinstance(test, Literal) for _, test in tests)
            ):
                return _ordered(op, left, right)
            return from_condition(either(*(both(*pair) for pair in tests)))
    if isinstance(op, ast.Is | ast.Eq) and isinstance(left, Const) and isinstance(right, Const):
        return Const(left.value == right.value and (isinstance(op, ast.Eq) or type(left.value) is type(right.value)))
    if isinstance(left, Const) and isinstance(right, Const):
        return _tried(_COMPARE[type(op)][1], left.value, right.value, Expr("?", left, right))
    if isinstance(op, ast.Is | ast.Eq):
        for one, other in ((left, right), (right, left)):
            is_any = is_unread(one) or (
                isinstance(one, Member) and isinstance(one.of, Obj) and one.of.kind is Kind.INSTANCE
            )
            if isinstance(other, Const) and isinstance(one, Obj | Lib | Bound | Member | Super | Tup) and not is_any:
                is_unlike = not isinstance(one, Lib | Tup) and not (isinstance(one, Obj) and one.kind is Kind.INSTANCE)
                if other.value is None or (is_unlike if isinstance(op, ast.Eq) else not isinstance(one, Tup)):
                    return FALSE_VALUE
            if other == NONE and isinstance(one, Tensor):
                if one.kind is TensorKind.GRADIENT:
                    return Expr("is", one, NONE, varies=False, loops=frozenset(run.loops))
                return FALSE_VALUE
            if (
                other == NONE
                and isinstance(one, Expr)
                and (one.op in _NUMBERS or (one.op == "process" and len(one.args) == 1))
            ):
                return FALSE_VALUE
        if (
            isinstance(left, Obj | Lib)
            and isinstance(right, Obj | Lib)
            and not (isinstance(left, Obj) and left.kind in (_IDENTICAL if isinstance(op, ast.Eq) else {Kind.INSTANCE}))
        ):
            return Const(left == right)
        if left == right and isinstance(left, Obj):
            return TRUE_VALUE
    if isinstance(op, ast.In):
        return _contained(run, left, right)
    if isinstance(op, ast.Eq) and any(
        isinstance(one, Expr)
        and isinstance(other, Const)
        and isinstance(other.value, str)
        and equals(one, other.value) is False
        for one, other in ((left, right), (right, left))
    ):
        return FALSE_VALUE
    name = "is" if isinstance(op, ast.Is) and NONE in (left, right) else _COMPARE[type(op)][0]
    if name == "is" and NONE not in (left, right):
        name = "=="
    if name in {"==", "is"} and isinstance(left, Const):
        left, right = right, left
    if name in {">", ">="}:
        left, right = right, left
        name = {">": "<", ">=": "<="}[name]
    if (
        name == "=="
        and isinstance(left, Expr)
        and left.op in {"rank", "local_rank"}
        and isinstance(right, Const)
        and right.value == -1
    ):
        return FALSE_VALUE
    if any(isinstance(one, Tensor) for one in (left, right)):
        return joined_tensor([one for one in (left, right) if isinstance(one, Tensor)])
    if (
        name == "=="
        and isinstance(right, Const)
        and isinstance(right.value, bool)
        and isinstance(left, Expr)
        and _is_test(left)
    ):
        return left if right.value else from_condition(negate(run.truth(left)))
    if name == "==" and left == right and isinstance(left, Expr) and not left.loops:
        return TRUE_VALUE
    return Expr(name, _part(left), _part(right), varies=may_vary(left) or may_vary(right))


_ORDERS = (ast.Eq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _ordered(op: ast.cmpop, left: Value, right: Value) -> Expr:
    """A comparison of one of several things that comes out open for each of them: one thing that is not known."""
    if isinstance(op, ast.Gt | ast.GtE):
        left, right = right, left
    name = _COMPARE[type(op)][0].replace(">", "<")
    if name == "==" and isinstance(left, Const):
        left, right = right, left
    return Expr(name, left, right, varies=may_vary(left) or may_vary(right), loops=loops_of((left, right)))


def _contained(run: Machine, left: Value, right: Value) -> Value:
    match right:
        case Tup():
            return from_condition(either(*(run.truth(run.compared(ast.Eq(), left, one)) for one in right.items)))
        case Const(value=str(text)) if isinstance(left, Const) and isinstance(left.value, str):
            return Const(left.value in text)
        case Expr() if isinstance(left, Const) and isinstance(left.value, str) and contains(right, left.value):
            return TRUE_VALUE
        case Obj(kind=Kind.DICT) if isinstance(left, Const):
            if right.has(left.value):
                inside = right.at(left.value)
                if isinstance(inside, Choice):
                    return from_condition(either(*(condition for condition, option in options_of(inside))))
                return TRUE_VALUE
            if not is_open(right):
                return FALSE_VALUE
        case Obj(kind=Kind.LIST | Kind.SET) if not is_open(right):
            items = [one for value in right.fields.values() for one in each(value)]
            return from_condition(either(*(run.truth(run.compared(ast.Eq(), left, one)) for one in items)))
    special = contained_in(left, right)
    if special is not None:
        return special
    return Expr(
        "in",
        _part(left),
        _part(right),
        varies=may_vary(left) or may_vary(right),
        loops=frozenset(run.loops) if isinstance(right, Obj) else frozenset(),
    )


# -- the other kinds -------------------------------------------------------------------------------------------------


def _constant(run: Machine, node: ast.Constant) -> Value:  # noqa: ARG001
    return Const(node.value)


def _if_expression(run: Machine, node: ast.IfExp) -> Value:
    condition = run.holds(run.truth(run.value(node.test)))
    if condition is TRUE:
        return run.value(node.body)
    if condition is FALSE:
        return run.value(node.orelse)

    def arm(code: ast.expr, *, holds: bool) -> Value:
        with narrowed(run, node.test, holds=holds):
            return run.value(code)

    ways = [
        (condition, partial(arm, node.body, holds=True)),
        (negate(condition), partial(arm, node.orelse, holds=False)),
    ]
    return run.values_of(ways, node)


def _tuple(run: Machine, node: ast.Tuple) -> Value:
    items: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = run.value(element.value)
            found = run.exact_items(value)
            if found is None:
                return run.unread(node, [value, *items])
            items.extend(found)
        else:
            items.append(run.value(element))
    return Tup(tuple(items))


def _list(run: Machine, node: ast.List | ast.Set) -> Value:
    made = run.make(Kind.LIST if isinstance(node, ast.List) else Kind.SET, node, open=False)
    for element in node.elts:
        if isinstance(element, ast.Starred):
            extended(run, made, run.value(element.value), node)
        else:
            append(run, made, run.value(element))
    return made


def _dict(run: Machine, node: ast.Dict) -> Value:
    made = run.make(Kind.DICT, node, open=False)
    for key, value_node in zip(node.keys, node.values, strict=True):
        if key is None:
            extended(run, made, run.value(value_node), node)
        else:
            put_item(run, made, run.value(key), run.value(value_node))
    return made


def _joined_text(run: Machine, node: ast.JoinedStr) -> Value:
    parts = [run.value(part) for part in node.values]
    if all(isinstance(part, Const) for part in parts):
        return Const("".join(str(part.value) for part in parts if isinstance(part, Const)))
    return Expr("text", *(_part(part) for part in parts))


def _formatted(run: Machine, node: ast.FormattedValue) -> Value:
    value = run.value(node.value)
    if isinstance(value, Const) and node.format_spec is None and node.conversion == -1:
        return Const(str(value.value))
    return Expr("format", _part(value), varies=may_vary(value))


def _call(run: Machine, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        found = lookup(run, run.frame, "super")
        if found == Lib("builtins.super"):
            return _super(run, node)
    if isinstance(node.func, ast.Attribute):
        of = run.value(node.func.value)
        arguments = given(run, node)
        return run.settle(run.call_member(of, node.func.attr, arguments, node))
    function = run.value(node.func)
    return run.settle(run.call(function, given(run, node), node))


def _super(run: Machine, node: ast.Call) -> Value:
    frame: Frame | None = run.frame
    while frame is not None and frame.cls is None:
        frame = frame.outer
    cls = frame.cls if frame is not None else None
    instance = frame.first if frame is not None else NONE
    if len(node.args) == 2:
        first, instance = run.value(node.args[0]), run.value(node.args[1])
        cls = first if isinstance(first, Obj) else cls
    return Super(cls, instance) if cls is not None else run.unread(node)


def _lambda(run: Machine, node: ast.Lambda) -> Value:
    return define_function(run, node)


def _named(run: Machine, node: ast.NamedExpr) -> Value:
    value = run.value(node.value)
    run.bind(node.target, value)
    return value


def _comprehension(run: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    kind = Kind.DICT if isinstance(node, ast.DictComp) else Kind.SET if isinstance(node, ast.SetComp) else Kind.LIST
    made = run.make(kind, node, open=False)
    outer = run.frame
    obj = run.make(Kind.FRAME, node, tag="comprehension")
    frame = Frame(obj, node, outer.module, outer.top, outer, names_of(node), outer.cls, outer.first)
    frame.mark, frame.conditions = run.state.mark(), len(run.conditions)

    def element() -> Condition:
        if isinstance(node, ast.DictComp):
            put_item(run, made, run.value(node.key), run.value(node.value))
        else:
            append(run, made, run.value(node.elt))
        return TRUE

    def generate(generators: list[ast.comprehension]) -> Condition:
        first, *others = generators
        over = run.value(first.iter)
        if kind is Kind.LIST and is_unordered(run, over):
            made.data["unordered"] = True

        def turn(value: Value) -> Condition:
            run.bind(first.target, value)
            return tests(first.ifs, others)

        is_known = bool(first.ifs) or kind is Kind.DICT  # which items, and under which keys, is the point of it
        return each_item(run, first.target, over, turn, most=SIFTED if is_known else UNROLLED)

    def tests(conditions: list[ast.expr], others: list[ast.comprehension]) -> Condition:
        if not conditions:
            return generate(others) if others else element()
        first, *rest = conditions
        return run.branch(run.truth(run.value(first)), lambda: tests(rest, others), lambda: TRUE, first)

    run.frames.append(frame)
    try:
        generate(node.generators)
    finally:
        run.frames.pop()
    return made


def _slice(run: Machine, node: ast.Slice) -> Value:
    parts = [NONE if part is None else run.value(part) for part in (node.lower, node.upper, node.step)]
    return Expr("slice", *(_part(part) for part in parts))


def _starred(run: Machine, node: ast.Starred) -> Value:
    return run.value(node.value)


def _await(run: Machine, node: ast.Await) -> Value:
    return run.value(node.value)


def _yield(run: Machine, node: ast.Yield) -> Value:
    value = NONE if node.value is None else run.value(node.value)
    frame = run.frame
    while (
        frame.on_yield is None
        and frame.outer is not None
        and frame.names is not None
        and not isinstance(frame.node, ast.FunctionDef)
    ):
        frame = frame.outer
    return frame.on_yield(value) if frame.on_yield is not None else NONE


def _yield_from(run: Machine, node: ast.YieldFrom) -> Value:
    frame = run.frame
    over = run.value(node.value)

    def turn(value: Value) -> Condition:
        if frame.on_yield is not None:
            frame.on_yield(value)
        return TRUE

    each_item(run, node, over, turn)
    return NONE


EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _if_expression,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.JoinedStr: _joined_text,
    ast.FormattedValue: _formatted,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Slice: _slice,
    ast.Starred: _starred,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
