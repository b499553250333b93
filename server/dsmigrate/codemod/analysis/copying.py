"""Copies: of a model, which is another model from there on, or of data."""

from __future__ import annotations

import ast
from dataclasses import replace

from dsmigrate.codemod.analysis.machine import Machine
from dsmigrate.codemod.analysis.roles import is_tracked, role_of
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.values import UNBOUND, Choice, Expr, Kind, Obj, Tensor, TensorKind, Value

_KINDS = frozenset({Kind.INSTANCE, Kind.LIBRARY, Kind.LIST, Kind.DICT, Kind.NAMESPACE, Kind.SET})

_UNREAD = frozenset({"unknown", "item", "field", "call", "part"})
"""What may turn out to be a model when it is wrapped."""


def copied(run: Machine, of: Value, node: ast.AST, *, deep: bool = True) -> Value:
    """A copy that is made at a place; a deep one of a wrapper copies the model in it too."""
    of = run.settle(of)
    if isinstance(of, Choice):
        return choose(
            (condition, copied(run, one, node, deep=deep)) for condition, one in of.options if one is not UNBOUND
        )
    tracked = is_tracked(run, of)
    if isinstance(of, Obj) and of.kind in _KINDS:
        made = run.make(
            of.kind, node, tag=f"copy of {id(of)}", made_by=of.made_by, cls=of.cls, **{**of.data, "copy_of": of}
        )
        for key, value in tuple(of.fields.items()):
            run.put(made, key, _owned(run, value, of, made, node, deep=deep) if tracked else _content(value, deep=deep))
        return made
    if isinstance(of, Expr) and (tracked or of.op in _UNREAD):
        symbol = Expr("copy", of, node)
        if tracked:
            run.known_models.add(symbol)
        return symbol
    return _content(of, deep=deep)


def _content(value: Value, *, deep: bool) -> Value:
    """A parameter that is copied by itself is data: it knows nothing of the model."""
    if isinstance(value, Choice):
        return choose((condition, _content(one, deep=deep)) for condition, one in value.options)
    if deep and isinstance(value, Tensor) and value.kind is TensorKind.PARAMETER:
        return replace(value, kind=TensorKind.DATA, of=None)
    return value


def _owned(run: Machine, value: Value, before: Obj, after: Obj, node: ast.AST, *, deep: bool) -> Value:
    """A parameter or buffer of a copy belongs to the copy."""
    if isinstance(value, Tensor) and value.of is before:
        return Tensor(value.kind, after, value.forwards, varies=value.varies)
    is_inside = deep and role_of(before) in {Role.WRAPPER, Role.REPLICAS} and value is not before
    return (
        copied(run, value, node)
        if is_inside and isinstance(value, Obj | Expr | Choice) and is_tracked_any(run, value)
        else value
    )


def is_tracked_any(run: Machine, value: Value) -> bool:
    """Whether a value may be something whose copy is another one."""
    return (
        any(is_tracked(run, one) for _, one in value.options) if isinstance(value, Choice) else is_tracked(run, value)
    )
