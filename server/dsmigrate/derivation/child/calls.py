"""Calls in config code: methods of dicts, conversions, pydantic models, and functions that are walked in turn."""

from __future__ import annotations

import ast
import enum
from types import FunctionType
from typing import TYPE_CHECKING, TypeGuard

from dsmigrate.derivation.child.expressions import (
    STRING_METHODS,
    default_value,
    evaluate,
    lift,
    read,
)
from dsmigrate.derivation.child.importer import READERS
from dsmigrate.derivation.child.models import is_model, nested_models
from dsmigrate.derivation.child.values import (
    UNKNOWN,
    Arguments,
    Bound,
    EachKey,
    Foreign,
    Item,
    Known,
    Local,
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

CONVERSIONS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
FOLDING = frozenset({"lower", "upper"})
SAME = frozenset({"copy", "deepcopy", "list", "tuple", "dict", "set", "sorted", "iter"})
"""Functions whose result is walked as their argument."""


def called(node: ast.Call, frame: Frame) -> Values:
    """Return what a call returns."""
    arguments = Arguments(
        tuple(evaluate(a.value if isinstance(a, ast.Starred) else a, frame) for a in node.args),
        {k.arg: evaluate(k.value, frame) for k in node.keywords if k.arg is not None},
        join(*(evaluate(k.value, frame) for k in node.keywords if k.arg is None)),
    )
    if isinstance(node.func, ast.Attribute):
        if is_super(node.func.value):
            return inherited(node.func.attr, arguments, frame)
        found = method(evaluate(node.func.value, frame), node.func.attr, arguments.positional, frame)
        if found is not None:
            return found
    return join(*(call_value(function, arguments, frame) or UNKNOWN for function in evaluate(node.func, frame)))


def is_super(node: ast.expr) -> bool:
    """Return whether an expression is ``super()``, with or without arguments."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def inherited(attr: str, arguments: Arguments, frame: Frame) -> Values:
    """Return what ``super().attr(…)`` returns: the method of the next class that has it."""
    found: Values = ()
    for owner in structs(frame.env.get("self", ())):
        after = False
        for kind in owner.kind.__mro__ if owner.kind else ():
            function = vars(kind).get(attr)
            if after and is_released(function):
                found = join(found, frame.enter(function, arguments.of(owner)))
                break
            after = after or function is frame.function
    return found


def is_released(target: object) -> TypeGuard[FunctionType]:
    """Return whether something is a function of the release."""
    return isinstance(target, FunctionType) and target.__module__.startswith("deepspeed")


def method(owners: Values, attr: str, arguments: tuple[Values, ...], frame: Frame) -> Values | None:
    """Return the result of a dict or string method, or None when it is neither."""
    if not any(isinstance(owner, Item) or plain(owner) for owner in owners):
        return None
    if attr in {"get", "pop", "setdefault"} and arguments:
        if attr == "pop":
            frame.record.popped.update(item.child(key).path for item in items(owners) for key in keys_of(arguments[0]))
        return read(owners, arguments[0], frame, arguments[1] if len(arguments) > 1 else with_none(attr))
    if attr in {"keys", "copy"}:
        return owners
    if attr == "items":
        return tuple(pair for owner in owners for pair in pairs(owner))
    if attr == "values":
        return tuple(Sequence(tuple(second(turn) for turn in pair.parts)) for owner in owners for pair in pairs(owner))
    if attr == "update" and arguments:
        for owner in structs(owners):
            overlay(owner, arguments[0], frame)
        return ()
    if attr in STRING_METHODS:
        for item in items(owners):
            frame.record.made_into(item.path, "string")
        return tuple(Item(item.path, made=True, folded=attr in FOLDING) for item in items(owners))
    return None


def plain(owner: Value) -> bool:
    """Return whether ``owner`` is a dict, of the release or filled by the code."""
    return (isinstance(owner, Struct) and owner.kind is None) or (
        isinstance(owner, Known) and isinstance(owner.value, dict)
    )


def with_none(attr: str) -> Values | None:
    """Return the default of a method without one: ``get`` answers None, ``pop`` raises."""
    return None if attr == "pop" else (Known(None),)


def second(turn: Values) -> Values:
    """Return the value of one turn of ``items()``."""
    return join(*(value.parts[1] for value in turn if isinstance(value, Sequence)))


def pairs(owner: Value) -> list[Sequence]:
    """Return the turns of ``for key, value in owner.items()``."""
    if isinstance(owner, Item):
        return [Sequence(((Sequence(((EachKey(owner),), (owner.child("*"),))),),))]
    if isinstance(owner, Known) and isinstance(owner.value, dict):
        return [Sequence(tuple((Sequence((lift(key), lift(value))),) for key, value in owner.value.items()))]
    if isinstance(owner, Struct):
        return [Sequence(tuple((Sequence(((Known(key),), values)),) for key, values in owner.entries.items()))]
    return []


def overlay(target: Struct, values: Values, frame: Frame) -> None:
    """``defaults.update(section)``: every key of the defaults is a key of the section."""
    for item in items(values):
        for key, default in target.entries.items():
            frame.record.read(item.child(key).path, frame.source, default_value(default))
        target.overlays.append((item, frozenset(target.entries)))


def call_value(function: Value, arguments: Arguments, frame: Frame) -> Values:
    """Return what calling one value returns."""
    if isinstance(function, Bound):
        return frame.enter(function.function, arguments.of(function.owner))
    if isinstance(function, Local):
        return frame.enter_local(function, arguments)
    if isinstance(function, Foreign):
        frame.record.hand_over(
            function.name, items(join(arguments.every, arguments.unpacked, *arguments.named.values()))
        )
    if not isinstance(function, Known):
        return ()
    target, positional = function.value, arguments.positional
    if positional and isinstance(target, type) and target in CONVERSIONS and target not in {list, dict}:
        return converted(positional[0], CONVERSIONS[target], frame)
    if positional and getattr(target, "__name__", "") in SAME:
        return positional[0]
    if target is isinstance and len(positional) > 1:
        for item in items(positional[0]):
            frame.record.tested_as(item.path, kinds_in(positional[1]))
        return ()
    if isinstance(target, type):
        return construct(target, arguments, frame)
    return frame.enter(target, arguments) if is_released(target) else made_from(arguments.every)


def made_from(values: Values) -> Values:
    """Return values that are computed from parts of the config."""
    return tuple(Item(item.path, made=True) for item in items(values))


def converted(values: Values, kind: str, frame: Frame) -> Values:
    """Note that a value of the config is made into a JSON type."""
    for item in items(values):
        frame.record.made_into(item.path, kind)
    constant = known(values)
    return (constant,) if constant else made_from(values)


def construct(target: type, arguments: Arguments, frame: Frame) -> Values:
    """A class of the release: a pydantic model judges its section, any other is walked through its constructor."""
    if is_model(target):
        judge(target, arguments.unpacked, frame)
        return ()
    if issubclass(target, enum.Enum):
        for item in items(arguments.every):
            frame.record.closed(item, list(getattr(target, "_value2member_map_", {})))
    constructor = vars(target).get("__init__", getattr(target, "__init__", None))
    if not target.__module__.startswith("deepspeed") or not is_released(constructor):
        return made_from(arguments.every)
    made = Struct(kind=target)
    if target in frame.record.built:
        return (made,)
    frame.enter(constructor, arguments.of(made))
    if target.__module__ in READERS:
        for function in methods(target):
            frame.enter(function, Arguments(((made,),)))
    return (made,)


def judge(model: type, unpacked: Values, frame: Frame) -> None:
    """``Model(**section)``: the section that is read first is judged, others are other names of it."""
    judged = frame.record.in_order(item.path for item in items(unpacked) if item.path)
    for path in judged[:1]:
        frame.record.models.setdefault(path, model)
    for path in judged[1:]:
        frame.record.aliases.setdefault(path, judged[0])
    for sections in structs(unpacked):
        judge_fields(model, sections, frame)


def methods(target: type) -> list[FunctionType]:
    """Return the methods of a class and of the classes it inherits from, each once."""
    found = {name: value for base in reversed(target.__mro__) for name, value in vars(base).items()}
    return [value for value in found.values() if is_released(value)]


def kinds_in(values: Values) -> list[str]:
    """Return the JSON types that the second argument of ``isinstance`` names."""
    constant = known(values)
    named = constant.value if constant is not None else ()
    every = named if isinstance(named, list | tuple) else [named]
    return [CONVERSIONS[kind] for kind in every if isinstance(kind, type) and kind in CONVERSIONS]


def judge_fields(model: type, sections: Struct, frame: Frame) -> None:
    """``Model(**{name: config.get(name)})``: each section is judged by the model of the field of its name."""
    models = nested_models(model)
    for key, values in sections.entries.items():
        for item in items(values):
            if key in models:
                frame.record.models.setdefault(item.path, models[key])


def stored(targets: Values, index: Values, values: Values, frame: Frame) -> None:
    """``target[index] = values``: fill a dict; copying any key of a section over defaults reads those keys."""
    for target in structs(targets):
        for key in keys_of(index):
            if key != "*":
                target.add(key, values)
        overlay(target, tuple(value.section for value in index if isinstance(value, EachKey)), frame)
