"""Classes of the script: their order of bases, what an attribute of an instance is, and how instances are made."""

from __future__ import annotations

import ast
from functools import partial

from dsmigrate.codemod.analysis.classes import bases_of, is_closed, looked_up, order
from dsmigrate.codemod.analysis.conditions import negate, options_of
from dsmigrate.codemod.analysis.library import (
    attribute_of_object,
    attribute_of_symbol,
    attribute_written,
    decorated,
    library_name,
    made_by_library,
)
from dsmigrate.codemod.analysis.machine import Frame, Given, Machine
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.state import choose, filled
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.tensors import tensor_attribute
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
    TensorKind,
    Tup,
    Value,
    each,
    option_of,
)


def define_class(run: Machine, node: ast.ClassDef) -> Value:
    """The class that a statement makes, with its decorators applied."""
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
    if any(isinstance(base, Lib) and base.name == "typing.NamedTuple" for base in bases):
        made.data["dataclass"] = True
    return value


def attribute(run: Machine, of: Value, name: str, node: ast.AST) -> Value:
    """What an attribute of a value is."""
    of = run.settle(of)
    match of:
        case Choice():
            return run.values_of(
                [(condition, partial(run.attribute, option, name, node)) for condition, option in options_of(of)],
                node,
            )
        case Obj(kind=Kind.MODULE):
            return run.member_of_module(of, name)
        case Obj(kind=Kind.INSTANCE):
            return _of_instance(run, of, name, node)
        case Obj(kind=Kind.CLASS):
            return _of_class(run, of, name)
        case Obj(kind=Kind.FUNCTION):
            return run.settle(of.get(name, Expr("field", of, name)))
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
            return run.settle(of.function.get(name, Expr("field", of.function, name)))
        case Lib():  # of a folder without __init__.py too
            return run.dotted.get(f"{of.name}.{name}") or library_name(f"{of.name}.{name}")
        case Tensor():
            return tensor_attribute(run, of, name, node)
        case Expr():
            written = run.shadow(of).get(name)
            if written is not None:
                return run.settle(written)
            return attribute_of_symbol(run, of, name)
        case Const() | Tup():
            return Member(of, name)
    return Expr("field", run.unread(node, [of]), name)


def _of_instance(run: Machine, of: Obj, name: str, node: ast.AST) -> Value:
    assert of.cls is not None
    own = of.get(name)
    if own is not None:
        found = looked_up(of.cls, name)
        if found is not None and isinstance(found[0], Obj) and found[0].data.get("role") == "property":
            return _bound(run, of, found, name, node)
        if isinstance(own, Choice) and any(option is UNBOUND for _, option in own.options) and _falls_back(of, name):
            own = filled(own, _of_class_of(run, of, name, node))
        return run.settle(own)
    return _of_class_of(run, of, name, node)


def _falls_back(of: Obj, name: str) -> bool:
    """Whether an instance has an attribute that nothing seen assigned to it: its class has it, or it may get any."""
    assert of.cls is not None
    return (
        bool(of.data.get("open")) or not is_closed(of) or any(looked_up(of.cls, one) for one in (name, "__getattr__"))
    )


def _of_class_of(run: Machine, of: Obj, name: str, node: ast.AST) -> Value:
    """An attribute of an instance to which none is assigned."""
    assert of.cls is not None
    found = looked_up(of.cls, name)
    if found is not None and isinstance(found[0], Lib | Expr):
        default = _asked(run, of, name, node)
        return default if default is not None else _library_attribute(run, of, name, node)
    if found is not None:
        return _bound(run, of, found, name, node)
    if name == "__class__":
        return of.cls
    if name == "__dict__":
        of.data["open"] = True
        made = run.make(Kind.DICT, node, tag="__dict__", open=False)
        made.fields.update({key: value for key, value in of.fields.items() if isinstance(key, str)})
        return made
    asked = _asked(run, of, name, node)
    if asked is not None:
        return asked
    return _library_attribute(run, of, name, node)


def _asked(run: Machine, of: Obj, name: str, node: ast.AST) -> Value | None:
    """What a ``__getattr__`` of the script gives."""
    assert of.cls is not None
    if name.startswith("__"):
        return None
    found = looked_up(of.cls, "__getattr__")
    if found is not None and isinstance(found[0], Obj) and not any(frame.node is found[0].node for frame in run.frames):
        return run.call(_bound(run, of, found, "__getattr__", node), Given((Const(name),)), node)
    return None


def _library_attribute(run: Machine, of: Obj, name: str, node: ast.AST) -> Value:
    return attribute_of_object(run, of, name, node)


def _of_class(run: Machine, of: Obj, name: str) -> Value:
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
    if any(base.endswith(("Enum", "Flag")) for base in bases_of(of)) and isinstance(value, Const):
        return Expr("member", of, name)
    return value


def _bound(run: Machine, of: Value, found: tuple[Value, Value], name: str, node: ast.AST) -> Value:
    """What a name found in a class is, taken from an instance."""
    value = run.settle(found[0])
    if isinstance(value, Obj) and value.kind is Kind.FUNCTION:
        match value.data["role"]:
            case "static":
                return value
            case "class":
                return Bound(value, of.cls if isinstance(of, Obj) and of.cls is not None else of)
            case "property":
                return run.call_function(value, Given((of,)), node)
        return Bound(value, of)
    if isinstance(value, Lib):
        return Member(of, name)
    return value


def set_property(run: Machine, of: Obj, name: str, value: Value, node: ast.AST) -> bool:
    """Let a property's setter, or a ``__setattr__`` of the script, take a value; False where there is none."""
    if of.cls is None:
        return False
    found = looked_up(of.cls, name)
    if found is not None and isinstance(found[0], Obj) and found[0].data.get("role") == "property":
        setter = found[0].data.get("setter")
        if setter is not None:
            run.call_function(setter, Given((of, value)), node)
        return True
    return False


def instantiate(run: Machine, cls: Obj, given: Given, node: ast.AST) -> Value:
    """An instance of a class of the script."""
    names = set(bases_of(cls))
    if any(name.rpartition(".")[2] in {"Enum", "IntEnum", "StrEnum"} for name in names) and given.args:
        return Expr("member", cls, given.args[0])
    maker = looked_up(cls, "__new__")
    made = run.make(Kind.INSTANCE, node, cls=cls)
    if maker is not None and isinstance(maker[0], Obj) and not any(frame.node is maker[0].node for frame in run.frames):
        given_back = run.call_function(maker[0], given.behind(cls), node)
        if isinstance(given_back, Obj) and given_back.cls is not cls:
            return given_back
    if cls.data["dataclass"]:
        _fill(run, cls, made, given)
        after = looked_up(cls, "__post_init__")
        if after is not None and isinstance(after[0], Obj):
            run.call_function(after[0], Given((made,)), node)
        return made
    found = looked_up(cls, "__init__")
    if found is not None and isinstance(found[0], Obj):
        run.call(_bound(run, made, found, "__init__", node), given, node)
    elif found is not None and isinstance(found[1], Lib):
        made_by_library(run, made, found[1].name, given, node)
    elif found is not None:  # a base that is not read
        for index, value in enumerate(given.all()):
            run.put(made, ("given", index), value)
        if any(True for value in given.all() for _ in run.things_in(value)):
            run.held.setdefault(
                Expr("held", made), frozenset(one for value in given.all() for one in run.things_in(value))
            )
    if role_of(made) is Role.OPTIMIZER and not made.has("params"):
        _around_another(run, made, node)
    return made


def _around_another(run: Machine, made: Obj, node: ast.AST) -> None:
    """An optimizer of the script that holds another one, as Lookahead does, has the other's parameters."""
    inner = next(
        (value for value in made.own.values() if any(role_of(one) is Role.OPTIMIZER for one in each(value))), None
    )
    if inner is not None:
        groups = made.get("param_groups")
        made_by_library(run, made, "torch.optim.Optimizer", Given((inner,)), node)
        if groups is not None:
            run.put(made, "param_groups", groups)


def _fill(run: Machine, cls: Obj, made: Obj, given: Given) -> None:
    """Give a data class's instance its fields."""
    names: dict[str, Value] = {}
    for base in reversed(cls.data["order"]):
        if isinstance(base, Obj):
            for name in base.data["annotated"]:
                names[name] = base.get(name, UNBOUND)
    names.update(zip(list(names), given.args, strict=False))
    for name, value in given.named.items():
        if name in names:
            names[name] = value
    for name, value in names.items():
        if isinstance(value, Obj) and value.made_by == "dataclasses.field":
            maker = value.get("default_factory")
            default = value.get("default", UNBOUND)
            if maker is not None:
                default = run.call(maker, Given(), value.node or cls.node or ast.Pass())
            run.put(made, name, default)
        elif value is UNBOUND:
            run.put(made, name, Expr("unknown", cls.node, run.context, name, varies=False) if given.more else NONE)
        else:
            run.put(made, name, value)


def set_attribute(run: Machine, of: Value, name: str, value: Value, node: ast.AST) -> None:
    """Assign to an attribute of whatever a value may be."""
    of = run.settle(of)
    for condition, option in options_of(of):
        if not isinstance(option, Obj | Expr | Tensor):
            continue
        if name == "__dict__" and isinstance(option, Obj):
            option.data["open"] = True
        attribute_written(run, option, name, value, node)
        if isinstance(option, Tensor):
            continue
        if (
            isinstance(option, Obj)
            and name in option.data.get("buffers", ())
            and isinstance(value, Tensor)
            and not value.forwards
        ):
            value = Tensor(TensorKind.BUFFER, option, varies=value.varies)  # assigning to a buffer's name leaves it one
        if isinstance(option, Obj) and set_property(run, option, name, value, node):
            continue
        holder = run.shadow(option) if isinstance(option, Expr) else option
        original = _original(option, name)
        if original is not None:
            holder.own.setdefault(name, original)
        run.put(holder, name, choose([(negate(condition), holder.get(name, UNBOUND)), (condition, value)]))


def _original(of: Value, name: str) -> Value | None:
    """What an attribute is that nothing has been assigned to yet, where that is not an error."""
    if isinstance(of, Expr):
        return Expr("field", of, name)
    if isinstance(of, Obj) and of.kind is Kind.NAMESPACE and of.made_by == "argparse":
        return option_of(of, name)
    return None
