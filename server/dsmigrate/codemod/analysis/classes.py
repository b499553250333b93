"""Classes of the script: their order of bases, what an attribute of an instance is, and how instances are made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsmigrate.codemod.analysis.calls import Given, call, call_function
from dsmigrate.codemod.analysis.values import (
    NONE,
    UNBOUND,
    Bound,
    Choice,
    Const,
    Expr,
    Kind,
    Lib,
    Member,
    Obj,
    Super,
    Tensor,
    Tup,
    Value,
)

if TYPE_CHECKING:
    from dsmigrate.codemod.analysis.run import Run


def define_class(run: Run, node: ast.ClassDef) -> Value:
    """The class that a statement makes, with its decorators applied."""
    from dsmigrate.codemod.analysis.library import decorated
    from dsmigrate.codemod.analysis.run import Frame

    bases = [run.settle(run.value(base)) for base in node.bases if not isinstance(base, ast.Starred)]
    for keyword in node.keywords:
        run.value(keyword.value)
    made = run.make(Kind.CLASS, node, name=node.name, bases=bases, annotated=[], dataclass=False)
    made.data["order"] = order(made)
    frame = run.frame
    inner = Frame(made, node, frame.module, frame.top, frame, is_class=True)
    inner.mark = run.state.mark()
    inner.conditions = len(run.conditions)
    run.frames.append(inner)
    try:
        run.body(node.body)
    finally:
        run.frames.pop()
    value: Value = made
    for decorator in reversed(node.decorator_list):
        value = decorated(run, run.value(decorator), value, decorator)
    if any(isinstance(base, Lib) and base.name in {"typing.NamedTuple"} for base in bases):
        made.data["dataclass"] = True
    return value


def order(cls: Obj) -> tuple[Value, ...]:
    """The order in which a class and its bases are asked, classes of libraries among them; linearised as Python does."""
    bases = [base for base in cls.data["bases"] if isinstance(base, Obj | Lib | Expr)]
    lines = [list(base.data["order"]) if isinstance(base, Obj) and base.kind is Kind.CLASS else [base] for base in bases]
    lines.append(list(bases))
    found: list[Value] = [cls]
    while any(lines):
        lines = [line for line in lines if line]
        head = next((line[0] for line in lines if not any(line[0] in other[1:] for other in lines)), lines[0][0])
        found.append(head)
        lines = [[one for one in line if one != head] for line in lines]
    return tuple(found)


def bases_of(thing: Value) -> Iterator[str]:
    """The qualified names of the library's classes that a class or an instance is of."""
    if isinstance(thing, Lib):
        yield thing.name
        return
    if not isinstance(thing, Obj):
        return
    cls = thing if thing.kind is Kind.CLASS else thing.cls
    if cls is not None:
        yield from (base.name for base in cls.data["order"] if isinstance(base, Lib))
    if thing.made_by:
        yield thing.made_by


def is_closed(thing: Obj) -> bool:
    """Whether every base of an instance's class is read, or one of torch's whose attributes are known."""
    cls = thing if thing.kind is Kind.CLASS else thing.cls
    return cls is not None and all(
        isinstance(base, Obj) or (isinstance(base, Lib) and base.name in {"torch.nn.Module", "builtins.object", "abc.ABC", "torch.utils.data.Dataset"})
        for base in cls.data["order"]
    )


def looked_up(cls: Obj, name: str, *, behind: Obj | None = None) -> tuple[Value, Value] | None:
    """A name in a class or its bases, with the class that has it; a base of a library that comes first may have any."""
    line = cls.data["order"]
    if behind is not None and behind in line:
        line = line[line.index(behind) + 1 :]
    for base in line:
        if isinstance(base, Obj):
            if name in base.fields:
                return base.fields[name], base
        elif isinstance(base, Lib) and base.name not in {"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"}:
            return Lib(f"{base.name}.{name}"), base
        elif isinstance(base, Expr):
            return Expr("field", base, name), base
    return None


def attribute(run: Run, of: Value, name: str, node: ast.AST) -> Value:  # noqa: PLR0911
    """What an attribute of a value is."""
    from dsmigrate.codemod.analysis.library import attribute_of_object

    of = run.settle(of)
    match of:
        case Choice():
            return run.values_of(
                [(condition, lambda one=option: attribute(run, one, name, node)) for condition, option in of.options if option is not UNBOUND],
                node,
            )
        case Obj(kind=Kind.MODULE):
            return run.member_of_module(of, name)
        case Obj(kind=Kind.INSTANCE):
            return _of_instance(run, of, name, node)
        case Obj(kind=Kind.CLASS):
            return _of_class(run, of, name)
        case Obj(kind=Kind.FUNCTION):
            return run.settle(of.fields.get(name, Expr("field", of, name)))
        case Obj():
            return attribute_of_object(run, of, name, node)
        case Super():
            holder = of.instance if isinstance(of.instance, Obj) else None
            cls = holder if holder is None or holder.kind is Kind.CLASS else holder.cls
            found = looked_up(cls, name, behind=of.cls) if cls is not None else None
            if found is None or isinstance(found[0], Lib):
                return Member(of, name)
            return _bound(run, of.instance, found, name, node)
        case Bound():
            return run.settle(of.function.fields.get(name, Expr("field", of.function, name)))
        case Lib():
            from dsmigrate.codemod.analysis.library import library_name

            return library_name(run, f"{of.name}.{name}")
        case Tensor():
            from dsmigrate.codemod.analysis.tensors import tensor_attribute

            return tensor_attribute(run, of, name, node)
        case Expr():
            shadow = run.shadows.get(of)
            if shadow is not None and name in shadow.fields:
                return run.settle(shadow.fields[name])
            from dsmigrate.codemod.analysis.library import attribute_of_symbol

            return attribute_of_symbol(run, of, name, node)
        case Const() | Tup():
            return Member(of, name)
    return Expr("field", run.unread(node, [of]), name)


def _of_instance(run: Run, of: Obj, name: str, node: ast.AST) -> Value:
    assert of.cls is not None
    own = of.fields.get(name)
    if own is not None:
        found = looked_up(of.cls, name)
        if found is not None and isinstance(found[0], Obj) and found[0].data.get("role") == "property":
            return _bound(run, of, found, name, node)
        return run.settle(own)
    found = looked_up(of.cls, name)
    if found is not None and isinstance(found[0], Lib | Expr):
        default = _asked(run, of, name, node)
        return default if default is not None else _library_attribute(run, of, name, node)
    if found is not None:
        return _bound(run, of, found, name, node)
    if name == "__class__":
        return of.cls
    if name == "__dict__":
        made = run.make(Kind.DICT, node, tag="__dict__", open=False)
        made.fields.update({key: value for key, value in of.fields.items() if isinstance(key, str)})
        return made
    asked = _asked(run, of, name, node)
    if asked is not None:
        return asked
    return _library_attribute(run, of, name, node)


def _asked(run: Run, of: Obj, name: str, node: ast.AST) -> Value | None:
    """What a ``__getattr__`` of the script gives."""
    assert of.cls is not None
    if name.startswith("__"):
        return None
    found = looked_up(of.cls, "__getattr__")
    if found is not None and isinstance(found[0], Obj) and not any(frame.node is found[0].node for frame in run.frames):
        return call(run, _bound(run, of, found, "__getattr__", node), Given((Const(name),)), node)
    return None


def _library_attribute(run: Run, of: Obj, name: str, node: ast.AST) -> Value:
    from dsmigrate.codemod.analysis.library import attribute_of_object

    return attribute_of_object(run, of, name, node)


def _of_class(run: Run, of: Obj, name: str) -> Value:
    found = looked_up(of, name)
    if found is None:
        if name == "__name__":
            return Const(of.data["name"])
        if name == "__subclasses__":
            return Member(of, name)
        return Expr("field", of, name)
    value = run.settle(found[0])
    if isinstance(value, Obj) and value.kind is Kind.FUNCTION and value.data["role"] == "class":
        return Bound(value, of)
    if any(base.endswith("Enum") or base.endswith("Flag") for base in bases_of(of)) and isinstance(value, Const):
        return Expr("member", of, name)
    return value


def _bound(run: Run, of: Value, found: tuple[Value, Value], name: str, node: ast.AST) -> Value:
    """What a name found in a class is, taken from an instance."""
    value = run.settle(found[0])
    if isinstance(value, Obj) and value.kind is Kind.FUNCTION:
        match value.data["role"]:
            case "static":
                return value
            case "class":
                return Bound(value, of.cls if isinstance(of, Obj) and of.cls is not None else of)
            case "property":
                return call_function(run, value, Given((of,)), node)
        return Bound(value, of)
    if isinstance(value, Lib):
        return Member(of, name)
    return value


def set_property(run: Run, of: Obj, name: str, value: Value, node: ast.AST) -> bool:
    """Let a property's setter, or a ``__setattr__`` of the script, take a value; False where there is none."""
    if of.cls is None:
        return False
    found = looked_up(of.cls, name)
    if found is not None and isinstance(found[0], Obj) and found[0].data.get("role") == "property":
        setter = found[0].data.get("setter")
        if setter is not None:
            call_function(run, setter, Given((of, value)), node)
        return True
    return False


def instantiate(run: Run, cls: Obj, given: Given, node: ast.AST) -> Value:
    """An instance of a class of the script."""
    from dsmigrate.codemod.analysis.library import made_by_library

    names = set(bases_of(cls))
    if any(name.rpartition(".")[2] in {"Enum", "IntEnum", "StrEnum"} for name in names) and given.args:
        return Expr("member", cls, given.args[0])
    maker = looked_up(cls, "__new__")
    made = run.make(Kind.INSTANCE, node, cls=cls)
    if maker is not None and isinstance(maker[0], Obj) and not any(frame.node is maker[0].node for frame in run.frames):
        given_back = call_function(run, maker[0], given.behind(cls), node)
        if isinstance(given_back, Obj) and given_back.cls is not cls:
            return given_back
    if cls.data["dataclass"]:
        _fill(run, cls, made, given)
        after = looked_up(cls, "__post_init__")
        if after is not None and isinstance(after[0], Obj):
            call_function(run, after[0], Given((made,)), node)
        return made
    found = looked_up(cls, "__init__")
    if found is not None and isinstance(found[0], Obj):
        call(run, _bound(run, made, found, "__init__", node), given, node)
    elif found is not None and isinstance(found[1], Lib):
        made_by_library(run, made, found[1].name, given, node)
    elif found is not None:  # a base that is not read
        for index, value in enumerate(given.all()):
            run.put(made, ("given", index), value)
        if any(True for value in given.all() for _ in run.things_in(value)):
            run.held.setdefault(Expr("held", made), frozenset(one for value in given.all() for one in run.things_in(value)))
    return made


def _fill(run: Run, cls: Obj, made: Obj, given: Given) -> None:
    """Give a data class's instance its fields."""
    names: dict[str, Value] = {}
    for base in reversed(cls.data["order"]):
        if isinstance(base, Obj):
            for name in base.data["annotated"]:
                names[name] = base.fields.get(name, UNBOUND)
    for name, value in zip(names, given.args, strict=False):
        names[name] = value
    for name, value in given.named.items():
        if name in names:
            names[name] = value
    for name, value in names.items():
        if isinstance(value, Obj) and value.made_by == "dataclasses.field":
            maker = value.fields.get("default_factory")
            default = value.fields.get("default", UNBOUND)
            if maker is not None:
                default = call(run, maker, Given(), value.node or cls.node or ast.Pass())
            run.put(made, name, default)
        elif value is UNBOUND:
            run.put(made, name, Expr("unknown", cls.node, run.context, name, varies=False) if given.more else NONE)
        else:
            run.put(made, name, value)


def parts_of(thing: Obj) -> set[Obj]:
    """A module and the modules that hang on it, through attributes, lists and dictionaries."""
    found: set[Obj] = set()
    pending: list[Value] = [thing]
    while pending:
        one = pending.pop()
        if isinstance(one, Choice):
            pending.extend(option for _, option in one.options)
        elif isinstance(one, Tup):
            pending.extend(one.items)
        elif isinstance(one, Obj) and one not in found and one.kind in {Kind.INSTANCE, Kind.LIBRARY, Kind.LIST, Kind.DICT}:
            found.add(one)
            pending.extend(one.fields.values())
    return found
