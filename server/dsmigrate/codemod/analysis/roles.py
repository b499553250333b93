"""What things are in a training: their roles, by the classes that they are of."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.machine import Machine
from dsmigrate.codemod.analysis.summaries.registry import Role, role_of_class
from dsmigrate.codemod.analysis.values import NONE, Expr, Kind, Obj, Tensor, TensorKind, Thing, Value


def role_of(thing: Value) -> Role | None:
    """The role of a thing in the training, None where it has none or none is known."""
    if isinstance(thing, Obj):
        if thing.kind in {Kind.LIBRARY, Kind.INSTANCE}:
            return next(filter(None, map(role_of_class, bases_of(thing))), None)
    return None


def is_step(of: Obj, name: str) -> bool:
    """Whether a method is the step of an optimizer or schedule of the script's own class: it is one event, however written."""
    return name == "step" and role_of(of) in {Role.OPTIMIZER, Role.SCHEDULER}


def is_module(run: Machine, thing: Value) -> bool:
    """Whether a thing is a model, or may be one as it was wrapped or handed to an optimizer."""
    role = role_of(thing)
    if role is not None:
        return role in {Role.MODEL, Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.SHARDED, Role.AVERAGED}
    return isinstance(thing, Expr) and is_known(run, thing)


def is_known(run: Machine, thing: Expr) -> bool:
    """Whether a symbol is a model, or a copy of one that was made before that was known."""
    return thing in run.known_models or (thing.op == "copy" and is_known(run, thing.args[0]))


def held_by(run: Machine, thing: Expr) -> Iterator[Value]:
    """What unread code was given when it made a thing, and what was given to make that; in the end other than such things."""
    seen = {thing}
    pending = [thing]
    while pending:
        for one in run.held.get(pending.pop(), ()):
            if not isinstance(one, Expr) or one in run.known_models:
                yield one
            elif one not in seen:
                seen.add(one)
                pending.append(one)


def is_tracked(run: Machine, thing: Value) -> bool:
    """Whether it matters to the training what an unread call does with a thing."""
    if isinstance(thing, Tensor):
        return thing.kind in {TensorKind.PARAMETER, TensorKind.GRADIENT} or bool(thing.forwards)
    if isinstance(thing, Expr):
        return is_known(run, thing) or any(is_tracked(run, one) for one in held_by(run, thing))
    role = role_of(thing)
    return role in {
        Role.MODEL,
        Role.WRAPPER,
        Role.REPLICAS,
        Role.SHARDED,
        Role.OPTIMIZER,
        Role.SCALER,
        Role.ENGINE,
        Role.AVERAGED,
    }


def inside_of(run: Machine, of: Thing) -> Value:
    """The model in a wrapper, or the model itself."""
    seen = 0
    value: Value = of
    while (
        isinstance(value, Obj)
        and role_of(value) in {Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.SHARDED}
        and seen < 4
    ):
        value = run.settle(value.get("module", NONE))
        seen += 1
    return value
