"""Lists, dictionaries and sets: items that are known one by one, and ``"*"`` for whatever else may be in them."""

from __future__ import annotations

import ast
from typing import Any

from dsmigrate.codemod.analysis.conditions import MAYBE, TRUE, Condition, Literal, either, negate, options_of
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.machine import Given, Machine, sources
from dsmigrate.codemod.analysis.picks import picked_here
from dsmigrate.codemod.analysis.roles import is_tracked, role_of
from dsmigrate.codemod.analysis.state import choose, filled
from dsmigrate.codemod.analysis.summaries.registry import Role, role_of_class
from dsmigrate.codemod.analysis.values import (
    NONE,
    UNBOUND,
    Choice,
    Const,
    Expr,
    Kind,
    Lib,
    Obj,
    Tensor,
    Tup,
    Value,
    each,
    may_vary,
)

REST = "*"
_MANY = 12
"""Entries of a table of which one is taken by a key that is not known; more are not gone through."""
_LONGEST = 64
"""Items of a list that are kept apart."""


def is_open(of: Obj) -> bool:
    """Whether a container may hold more than what is known of it."""
    return bool(of.data.get("open")) or of.has(REST)


def items_of(of: Obj) -> list[Value]:
    """The items of a list in order, those of a dictionary or set in theirs."""
    return [value for key, value in of.fields.items() if key != REST]


def append(run: Machine, of: Obj, value: Value) -> None:
    """Put an item at the end; one that a loop puts there at each turn is of the rest."""
    value = picked_here(run, value)
    count = sum(isinstance(key, int) for key in of.fields)
    if of.turn == run.turn and not is_open(of) and count < _LONGEST:
        run.put(of, count, value)
    else:
        add_rest(run, of, value)


def add_rest(run: Machine, of: Obj, value: Value) -> None:
    """Put a value among those that a container may hold at no known place."""
    value = picked_here(run, value)
    now = of.get(REST, UNBOUND)
    run.put(of, REST, value if now is UNBOUND else choose([(MAYBE, now), (MAYBE, value)]))


def put_item(run: Machine, of: Obj, key: Value, value: Value, *, condition: Condition = TRUE) -> None:
    """Assign to an item of a dictionary, a list, or an object of a library, if it is that one."""
    key, value = run.settle(key), picked_here(run, value)
    if of.kind is Kind.MODULE and not isinstance(key, Const):
        settings_written(run, of)
    elif isinstance(key, Const) and is_hashable(key.value):
        name: Any = key.value
        if of.kind is Kind.LIST and not isinstance(name, int):
            return
        if of.kind is Kind.LIST and isinstance(name, int) and name < 0:
            name += sum(isinstance(one, int) for one in of.fields)
        if of.kind not in {Kind.LIST, Kind.DICT, Kind.SET, Kind.MODULE}:
            name = ("item", name)
        run.put(of, name, choose([(negate(condition), of.get(name, UNBOUND)), (condition, value)]))
    elif (of.kind in {Kind.LIST, Kind.DICT, Kind.SET} or role_of(of) is Role.MODEL) and not (
        isinstance(key, Expr) and key.op == "slice"
    ):
        if of.kind is Kind.DICT:
            settings_written(run, of)
        add_rest(run, of, value)


CONFIGS = frozenset({"yacs.config.CfgNode", "fvcore.common.config.CfgNode", "ml_collections.ConfigDict"})
"""Classes of trees of settings, which files and the command line may give other values."""


def settings_written(run: Machine, of: Obj) -> None:
    """Code that is not read, or a name that is not known, may give any plain attribute another value, of the unread parts too."""
    pending, seen = [of], {of}
    while pending:
        one = pending.pop()
        for name, value in list(one.own.items()):
            if not isinstance(name, str) or name.startswith("__"):
                continue
            options = list(each(value))
            known = [option for option in options if not (isinstance(option, Expr) and option.op == "setting")]
            if known and all(isinstance(option, Const) for option in known):
                holder = () if one.kind is Kind.MODULE else (one,)  # two sections may have the same name and default
                run.put(one, name, Expr("setting", name, value, *holder))
            parts = {run.shadows[option] for option in options if isinstance(option, Expr) and option in run.shadows}
            parts |= {option for option in options if isinstance(option, Obj) and option.made_by in CONFIGS}
            pending += parts - seen
            seen |= parts


def is_hashable(value: object) -> bool:
    """Whether a constant can be a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def dict_item(run: Machine, of: Obj, key: Value, node: ast.AST) -> Value:
    """An item of a dictionary."""
    if of.data.get("group_of") is not None and key == Const("params"):
        run.event(Happening.ACCESS, node, of=of.data["group_of"], name=key)
    if isinstance(key, Const) and is_hashable(key.value):
        found = of.get(key.value)
        if found is not None:
            return run.settle(filled(found, rest_of(run, of, key.value)) if is_open(of) else found)
        if of.has(REST):
            return run.settle(rest_of(run, of, key.value))
        maker = of.data.get("default")
        if maker is not None:
            made = run.call(maker, Given(), node)
            run.put(of, key.value, made)
            return made
        return Expr("item", of, key.value)
    return _any_item(run, of, key, node)


def rest_of(run: Machine, of: Obj, key: Any) -> Value:
    """What a key gives that may be any: each its own, unless that is a model or another thing of the training."""

    def own(value: Value) -> Value:
        is_plain = isinstance(value, Expr) and not is_tracked(run, value)
        return Expr("item", of, key, varies=may_vary(value)) if is_plain else value

    if not of.has(REST):
        return Expr("item", of, key)
    return choose((condition, own(value)) for condition, value in options_of(of.at(REST)))


def _any_item(run: Machine, of: Obj, key: Value, node: ast.AST, *, is_there: bool = True) -> Value:
    if isinstance(key, Tup) and all(isinstance(part, Const) for part in key.items):
        return dict_item(run, of, Const(tuple(part.value for part in key.items if isinstance(part, Const))), node)
    maker = of.data.get("default")
    if maker is not None and is_there and not of.has(REST):
        run.put(of, REST, run.call(maker, Given(), node))
    entries = [(name, value) for name, value in of.fields.items() if name != REST]
    if 0 < len(entries) <= _MANY and isinstance(key, Expr):
        options: list[tuple[Condition, Value]] = [
            (Literal(Expr("==", key, Const(name))), value) for name, value in entries
        ]
        if (
            is_there and not is_open(of) and "default" not in of.data and all(_makes(value) for _, value in options)
        ):  # any other key is an error
            options[-1] = (negate(either(*(condition for condition, _ in options[:-1]))), options[-1][1])
        if of.has(REST):
            options.append((MAYBE, of.at(REST)))
        return run.settle(choose(options))
    if of.has(REST) and not entries:
        return run.settle(of.at(REST))
    held = dict.fromkeys(one for value in of.fields.values() for one in each(value) if one is not UNBOUND)
    losses = [one for one in held if isinstance(one, Tensor)]
    if losses and all(isinstance(one, Tensor | Const | Expr) for one in held):
        return choose((MAYBE, one) for one in losses)
    return run.unread(node, [key, *(value for _, value in entries[:_MANY])])


def list_item(run: Machine, of: Obj, key: Value, node: ast.AST) -> Value:
    """An item of a list, or a part of it."""
    items = items_of(of)
    if isinstance(key, Const) and isinstance(key.value, int) and not is_open(of):
        if -len(items) <= key.value < len(items):
            return run.settle(items[key.value])
        return run.unread(node, [key])
    if isinstance(key, Expr) and key.op == "slice":
        made = run.make(Kind.LIST, node, tag="slice", open=False)
        if all(isinstance(part, Const) for part in key.args) and not is_open(of):
            for index, value in enumerate(items[slice(*(part.value for part in key.args))]):
                run.put(made, index, value)
        else:
            for value in (*items, of.get(REST, UNBOUND)):
                if value is not UNBOUND:
                    add_rest(run, made, value)
        return made
    found = [*items, *([of.at(REST)] if of.has(REST) else [])]
    if found and len(found) <= _MANY:
        return run.settle(choose((MAYBE, value) for value in found))
    return run.unread(node, [key, *found[:_MANY]])


def extended(run: Machine, of: Obj, more: Value, node: ast.AST) -> None:
    """Put the items of something else into a container."""
    for one in each(run.settle(more)):
        if of.kind is Kind.DICT:
            if isinstance(one, Obj) and one.kind is Kind.DICT:
                for key, value in tuple(one.fields.items()):
                    if key == REST:
                        add_rest(run, of, value)
                    else:
                        run.put(of, key, value)
                continue
            pairs = run.exact_items(one) if isinstance(one, Obj | Tup) else None
            if pairs is not None and all(isinstance(pair, Tup) and len(pair.items) == 2 for pair in pairs):
                for pair in pairs:
                    put_item(run, of, pair.items[0], pair.items[1])  # type: ignore[union-attr]
                continue
            settings_written(run, of)
            add_rest(run, of, _value_of_pair(run.element(one, node)))
            continue
        items = run.exact_items(one)
        if items is not None:
            for item in items:
                append(run, of, item)
        else:
            add_rest(run, of, run.element(one, node))


def _value_of_pair(value: Value) -> Value:
    return value.items[1] if isinstance(value, Tup) and len(value.items) == 2 else value


def added(run: Machine, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """What ``+``, ``*`` and ``|`` make of containers; None where neither is one."""
    if isinstance(op, ast.Add) and isinstance(left, Tup) and isinstance(right, Tup):
        return Tup(left.items + right.items)
    containers = {Kind.LIST, Kind.SET, Kind.DICT}
    is_left = isinstance(left, Obj) and left.kind in containers
    is_right = isinstance(right, Obj) and right.kind in containers
    if isinstance(op, ast.Add) and (is_left or is_right):
        made = run.make(Kind.LIST, node, tag="sum", open=False)
        extended(run, made, left, node)
        extended(run, made, right, node)
        return made
    if isinstance(op, ast.BitOr) and is_left and is_right:
        assert isinstance(left, Obj)
        made = run.make(left.kind, node, tag="union", open=False)
        extended(run, made, left, node)
        extended(run, made, right, node)
        return made
    if isinstance(op, ast.Mult) and (is_left or is_right or isinstance(left, Tup) or isinstance(right, Tup)):
        source, times = (left, right) if is_left or isinstance(left, Tup) else (right, left)
        items = list(source.items) if isinstance(source, Tup) else items_of(source) if isinstance(source, Obj) else []
        if isinstance(times, Const) and isinstance(times.value, int) and len(items) * times.value <= _LONGEST:
            if isinstance(source, Tup):
                return Tup(tuple(items) * times.value)
            made = run.make(Kind.LIST, node, tag="repeated", open=False)
            for index, value in enumerate(items * times.value):
                run.put(made, index, value)
            return made
        made = run.make(Kind.LIST, node, tag="repeated", open=False)
        for value in items or [NONE]:
            add_rest(run, made, value)
        return made
    return None


def length(run: Machine, of: Value) -> Value:
    """The number of items of a value."""
    match of:
        case Tup():
            return Const(len(of.items))
        case Const(value=str(text)):
            return Const(len(text))
        case Obj(kind=Kind.LIST | Kind.DICT | Kind.SET) if not is_open(of):
            if not any(isinstance(value, Choice) for value in of.fields.values()):
                return Const(len(of.fields))
    loops = frozenset(run.loops) if isinstance(of, Obj) and of.kind in {Kind.LIST, Kind.DICT, Kind.SET} else frozenset()
    return Expr("len", of, varies=may_vary(of), loops=loops)


def container_method(run: Machine, of: Obj, name: str, given: Given, node: ast.AST) -> Value:
    """A method of a list, a dictionary or a set."""
    first = given.get(0, "")
    match of.kind, name:
        case _, "append" | "add" | "appendleft":
            append(run, of, first)
        case _, "extend" | "update":
            for value in given.args:
                extended(run, of, value, node)
            for key, value in given.named.items():
                run.put(of, key, value)
        case Kind.LIST, "insert":
            add_rest(run, of, given.get(1, ""))
        case Kind.DICT, "get" | "pop" | "setdefault":
            default = given.get(1, "default", NONE if name == "get" else UNBOUND)
            return _got(run, of, name, first, default, node)
        case _, "pop" | "popleft" | "popitem":
            items = items_of(of)
            if isinstance(first, Const) or not given.args:
                index = first.value if isinstance(first, Const) else -1
                if (
                    not is_open(of)
                    and isinstance(index, int)
                    and -len(items) <= index < len(items)
                    and of.turn == run.turn
                ):
                    found = items[index]
                    if index in {-1, len(items) - 1}:
                        run.put(of, len(items) - 1, UNBOUND)
                    return run.settle(found)
            return run.settle(choose((MAYBE, value) for value in of.fields.values())) if of.fields else run.unread(node)
        case _, "clear":
            for key in tuple(of.fields):
                run.put(of, key, UNBOUND)
        case Kind.DICT, "keys" | "values" | "items":
            return run.iterator(node, f"dict.{name}", of)
        case _, "copy" | "union":
            made = run.make(of.kind, node, tag="copy", open=bool(of.data.get("open")), default=of.data.get("default"))
            for key, value in tuple(of.fields.items()):
                run.put(made, key, value)
            for value in given.args:
                extended(run, made, value, node)
            return made
        case _, "sort" | "reverse" | "remove" | "discard":
            if name == "sort" and "key" in given.named and of.fields:
                run.call(given.named["key"], Given((next(iter(of.fields.values())),)), node)
            if name != "discard" and not is_open(of) and len(of.fields) > 1:
                items = items_of(of)
                for key in tuple(of.fields):
                    run.put(of, key, UNBOUND)
                for value in items:
                    add_rest(run, of, value)
        case _, "index" | "count" | "__len__":
            return length(run, of) if name == "__len__" else run.unread(node, [of, *given.args])
        case _, "__contains__":
            return run.compared(ast.In(), first, of)
        case _, "__getitem__":
            return run.item(of, first, node)
        case _, "__setitem__":
            put_item(run, of, first, given.get(1, ""))
        case _, "most_common" | "intersection" | "difference" | "isdisjoint" | "issubset":
            return run.unread(node, [of, *given.args])
        case _:
            found = of.get(name)
            if found is not None:
                return run.call(found, given, node)
            return run.unread(node, [of, *given.args])
    return NONE


def _got(run: Machine, of: Obj, name: str, key: Value, default: Value, node: ast.AST) -> Value:
    """``get``, ``pop`` and ``setdefault`` of a dictionary."""
    if isinstance(key, Const) and is_hashable(key.value):
        found = of.get(key.value, UNBOUND)
        certain = found is not UNBOUND and not (
            isinstance(found, Choice) and any(one is UNBOUND for _, one in found.options)
        )
        if name == "pop":
            run.put(of, key.value, UNBOUND)
        if certain:
            return run.settle(found)
        if found is UNBOUND and not is_open(of):
            if name == "setdefault":
                run.put(of, key.value, default)
            return default
        if isinstance(found, Choice):
            bound = [condition for condition, one in found.options if one is not UNBOUND]
            missing = negate(bound[0]) if len(bound) == 1 else MAYBE
            value = choose([*found.options, (missing, default)])
            value = choose(
                (c, v) for c, v in (value.options if isinstance(value, Choice) else [(TRUE, value)]) if v is not UNBOUND
            )
            if name == "setdefault":
                run.put(of, key.value, value)
            return run.settle(value)
        rest = rest_of(run, of, key.value)
        return run.settle(choose([(MAYBE, rest), *([] if default is UNBOUND else [(MAYBE, default)])]))
    found = _any_item(run, of, key, node, is_there=False)
    return found if default is UNBOUND or default == NONE else choose([(MAYBE, found), (MAYBE, default)])


def _makes(value: Value) -> bool:
    """Whether a value is a class or a function, whose calls in several places have to go together."""
    if isinstance(value, Lib):
        return role_of_class(value.name) is not None
    return isinstance(value, Obj) and value.kind in {Kind.CLASS, Kind.FUNCTION, Kind.PARTIAL}


def is_unordered(run: Machine, value: Value) -> bool:
    """Whether something is gone over in the order of a set."""
    for one in each(run.settle(value)):
        if isinstance(one, Obj):
            if one.data.get("unordered") or (
                one.kind is Kind.SET
                and not all(isinstance(item, Const) and isinstance(item.value, int) for item in one.own.values())
            ):
                return True
            if (
                one.kind is Kind.ITERATOR
                and not one.data.get("is_sorted")
                and one.made_by != "element"
                and any(is_unordered(run, inner) for inner in sources(one) if inner is not one)
            ):
                return True
    return False


def from_items(
    run: Machine, node: ast.AST, kind: Kind, source: Value | None, named: dict[str, Value] | None = None
) -> Obj:
    """What ``list(x)``, ``dict(x, **named)`` and ``set(x)`` make."""
    made = run.make(kind, node, open=False)
    if source is not None:
        extended(run, made, source, node)
        if kind is not Kind.SET and is_unordered(run, source):
            made.data["unordered"] = True
    for key, value in (named or {}).items():
        run.put(made, key, value)
    return made
