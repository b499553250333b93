"""What expressions of config code stand for, and which reads of the config they are."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dsmigrate.derivation.child.record import MISSING
from dsmigrate.derivation.child.stubs import Stub, StubModule
from dsmigrate.derivation.child.values import (
    ANY_ITEM,
    ANY_NAME,
    UNKNOWN,
    Bound,
    EachKey,
    Foreign,
    Item,
    Known,
    Sequence,
    Struct,
    Value,
    Values,
    items,
    join,
    keys_of,
    known,
    structs,
)

if TYPE_CHECKING:
    from dsmigrate.derivation.child.walk import Frame

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
DECISIONS: dict[type[ast.cmpop], Callable[[str, str], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
STRING_METHODS = frozenset({"lower", "upper", "strip", "split", "startswith", "endswith", "replace"})


def evaluate(node: ast.expr | None, frame: Frame) -> Values:
    """Return what ``node`` can be; every expression below it is visited, so that no read is missed."""
    if node is None:
        return (Known(None),)
    handler = HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, frame) or UNKNOWN
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(child, frame)
    return UNKNOWN


def constant(node: ast.Constant, _: Frame) -> Values:
    """A literal."""
    return (Known(node.value),)


def name(node: ast.Name, frame: Frame) -> Values:
    """A local name, a global of the module, or a builtin."""
    if node.id in frame.env:
        return frame.env[node.id]
    missing = object()
    found = frame.globals.get(node.id, getattr(builtins, node.id, missing))
    return () if found is missing else lift(found)


def lift(value: object) -> Values:
    """Return a Python value as a value of the walk; a stub is not known, but for the name of what it stands for."""
    if isinstance(value, Stub | StubModule) and value.stands_for.startswith("deepspeed."):
        return (Foreign(value.stands_for),)
    return UNKNOWN if isinstance(value, Stub | StubModule) else (Known(value),)


def attribute(node: ast.Attribute, frame: Frame) -> Values:
    """An attribute of an object that is being filled, of a class or of a module."""
    found: Values = ()
    for owner in evaluate(node.value, frame):
        found = join(found, attribute_of(owner, node.attr))
    return found


def attribute_of(owner: Value, attr: str) -> Values:
    """Return ``owner.attr``."""
    if isinstance(owner, Struct):
        if attr in owner.entries:
            return owner.entries[attr] if owner.kind is None else join(owner.entries[attr], UNKNOWN)
        inherited = getattr(owner.kind, attr, None) if owner.kind else None
        return (Bound(owner, inherited),) if callable(inherited) else lift(inherited) if inherited is not None else ()
    if isinstance(owner, Foreign):
        return (Foreign(f"{owner.name}.{attr}"),)
    if isinstance(owner, Item) and attr == "value":
        return (Item(owner.path, made=True),)
    if isinstance(owner, Known) and not isinstance(owner.value, dict):
        try:
            return lift(getattr(owner.value, attr))
        except AttributeError:
            return ()
    return ()


def subscript(node: ast.Subscript, frame: Frame) -> Values:
    """``section[key]``: a read without default; an index into a list of the config; a look-up in a table."""
    owners, index = evaluate(node.value, frame), evaluate(node.slice, frame)
    return read(owners, index, frame)


def read(owners: Values, index: Values, frame: Frame, default: Values | None = None) -> Values:
    """Return what ``owner[index]`` is, or ``owner.get(index, default)`` when a default is given."""
    found = [read_one(owner, index, frame, default) or UNKNOWN for owner in owners]
    return join(*found, default or ())


def read_one(owner: Value, index: Values, frame: Frame, default: Values | None) -> Values:
    """Return what one owner has there; nothing when it has nothing."""
    if isinstance(owner, Item):
        return read_item(owner, index, frame, default)
    if isinstance(owner, Known):
        return look_up(owner.value, known(index))
    if isinstance(owner, Sequence):
        return join(*owner.parts)
    if not isinstance(owner, Struct):
        return ()
    found: Values = ()
    for key in keys_of(index):
        every = join(*owner.entries.values()) if key == ANY_NAME else ()
        found = join(found, owner.entries.get(key, every))
        for section in owner.sections(key):
            found = join(found, read_item(section, (Known(key),), frame, default))
    return found


def read_item(owner: Item, index: Values, frame: Frame, default: Values | None) -> Values:
    """Note the read of every key that ``index`` can be, and return what stands there; computed values have no keys."""
    found: Values = ()
    if owner.made:
        return found
    seen = default_value(default)
    for key in keys_of(index):
        child = owner.child(key)
        frame.record.read(child.path, frame.source, seen)
        found = join(found, (child,))
    if not found and index and isinstance(index[0], Known) and isinstance(index[0].value, int):
        found = (Item(owner.path + ANY_ITEM),)
    return found


def default_value(default: Values | None) -> Any:  # noqa: ANN401 - whatever the release has as a default
    """Return the Python value of a default, or MISSING when it is not one value."""
    if default is None:
        return MISSING
    if len(default) == 1 and isinstance(default[0], Struct) and default[0].kind is None:
        plain = {key: default_value(values) for key, values in default[0].entries.items()}
        return MISSING if MISSING in plain.values() else plain
    only = known(default)
    return MISSING if only is None else only.value


def look_up(table: object, key: Known | None) -> Values:
    """Return ``table[key]`` for a table of the release."""
    if key is None:
        return ()
    try:
        return lift(table[key.value])  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return ()


def compare(node: ast.Compare, frame: Frame) -> Values:
    """``key in section`` is a read; the sides of every other comparison are only visited."""
    left = evaluate(node.left, frame)
    for operation, right in zip(node.ops, node.comparators, strict=True):
        owners = evaluate(right, frame)
        if isinstance(operation, ast.In | ast.NotIn):
            sections = items(owners) + [section for owner in structs(owners) for section, _ in owner.overlays]
            for owner in sections:
                for key in keys_of(left) if not owner.made else ():
                    frame.record.read(owner.child(key).path, frame.source)
                    frame.tested.append(owner.child(key).path)
    return decided(node, frame)


def decided(node: ast.Compare, frame: Frame) -> Values:
    """Return the outcome of comparing two texts of the release, as in ``if "layer_reduction" in name``."""
    sides = [known(evaluate(side, frame)) for side in (node.left, node.comparators[0])]
    texts = [side.value for side in sides if side is not None and isinstance(side.value, str)]
    function = DECISIONS.get(type(node.ops[0]))
    return lift(function(*texts)) if function is not None and len(texts) == 2 and len(node.ops) == 1 else ()


def choice(node: ast.IfExp, frame: Frame) -> Values:
    """``a if test else b``; the else of a membership test is the default."""
    with frame.testing() as tested:
        evaluate(node.test, frame)
    body, orelse = evaluate(node.body, frame), evaluate(node.orelse, frame)
    frame.note_default(tested, body, orelse)
    return join(body, orelse)


def either(node: ast.BoolOp, frame: Frame) -> Values:
    """``a or b`` is either; ``a and b`` is only tested."""
    parts = [evaluate(value, frame) for value in node.values]
    return join(*parts) if isinstance(node.op, ast.Or) else parts[-1]


def arithmetic(node: ast.BinOp, frame: Frame) -> Values:
    """Arithmetic on constants; anything made from a value of the config stays with its path."""
    left, right = evaluate(node.left, frame), evaluate(node.right, frame)
    first, second, function = known(left), known(right), ARITHMETIC.get(type(node.op))
    if first is not None and second is not None and function is not None:
        try:
            return lift(function(first.value, second.value))
        except (TypeError, ValueError):
            return ()
    return tuple(Item(item.path, made=True) for item in items(join(left, right)))


def negative(node: ast.UnaryOp, frame: Frame) -> Values:
    """``-1`` is a constant, ``not x`` a test."""
    operand = known(evaluate(node.operand, frame))
    if operand is not None and isinstance(node.op, ast.USub) and isinstance(operand.value, int | float):
        return (Known(-operand.value),)
    return ()


def sequence(node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Values:
    """A display; one of constants only is a Python value."""
    parts = tuple(evaluate(element, frame) for element in node.elts)
    values = [known(part) for part in parts]
    if all(value is not None for value in values):
        return (Known([value.value for value in values if value is not None]),)
    return (Sequence(parts),)


def dictionary(node: ast.Dict, frame: Frame) -> Values:
    """A dict display; what is unpacked into it is part of it."""
    made = Struct()
    merged: Values = (made,)
    for key, value in zip(node.keys, node.values, strict=True):
        values = evaluate(value, frame)
        if key is None:
            merged = join(merged, items(values))
            continue
        for spelled in keys_of(evaluate(key, frame)):
            made.add(spelled, values)
    return merged


def comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Values:
    """A comprehension is a loop whose values are collected."""
    collected: list[Values] = []
    frame.loops(node.generators, lambda: collected.append(evaluate(node.elt, frame)))
    return (Sequence(tuple(collected)),)


def dict_comprehension(node: ast.DictComp, frame: Frame) -> Values:
    """``{key: config.get(key) for key in names}``."""
    made = Struct()

    def collect() -> None:
        values = evaluate(node.value, frame)
        for key in keys_of(evaluate(node.key, frame)):
            made.add(key, values)

    frame.loops(node.generators, collect)
    return (made,)


def text(node: ast.JoinedStr, frame: Frame) -> Values:
    """An f-string of constants is a constant."""
    pieces = []
    for value in node.values:
        inner = known(evaluate(value.value if isinstance(value, ast.FormattedValue) else value, frame))
        if inner is None:
            return ()
        pieces.append(str(inner.value))
    return (Known("".join(pieces)),)


def named(node: ast.NamedExpr, frame: Frame) -> Values:
    """``(name := value)``."""
    values = evaluate(node.value, frame)
    frame.env[node.target.id] = values
    return values


def call(node: ast.Call, frame: Frame) -> Values:
    """A call; see ``calls``."""
    from dsmigrate.derivation.child.calls import called  # noqa: PLC0415 - calls evaluate, and are evaluated

    return called(node, frame)


def iterated(values: Values) -> list[Values]:
    """Return what a loop variable is in each turn; for a section of the config it is one turn with any key."""
    turns: list[Values] = []
    for value in values:
        if isinstance(value, Sequence):
            turns.extend(value.parts)
        elif isinstance(value, Item):
            turns.append((EachKey(value), Item(value.path + ANY_ITEM)))
        elif isinstance(value, Struct) and value.kind is None:
            turns.extend((Known(key),) for key in value.entries)
            turns.extend((EachKey(section),) for section, _ in value.overlays)
        elif isinstance(value, Known) and isinstance(value.value, list | tuple | dict | set | frozenset):
            members = sorted(value.value) if isinstance(value.value, set | frozenset) else list(value.value)
            turns.extend(
                (Sequence(tuple(lift(part) for part in member)),) if isinstance(member, tuple) else lift(member)
                for member in members
            )
    return turns


HANDLERS: dict[type[ast.AST], Callable[[Any, Frame], Values]] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Compare: compare,
    ast.IfExp: choice,
    ast.BoolOp: either,
    ast.BinOp: arithmetic,
    ast.UnaryOp: negative,
    ast.List: sequence,
    ast.Tuple: sequence,
    ast.Set: sequence,
    ast.Dict: dictionary,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: dict_comprehension,
    ast.JoinedStr: text,
    ast.NamedExpr: named,
    ast.Call: call,
}
