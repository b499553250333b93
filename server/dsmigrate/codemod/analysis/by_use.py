"""Optimizers that unread code makes: what a thing is shows in what is done with it, and a second run knows it from the start."""

from __future__ import annotations

import ast
from typing import Any

from dsmigrate.codemod.analysis.conditions import options_of
from dsmigrate.codemod.analysis.library import made_by_library, parameters_in
from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.roles import is_known
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.values import Context, Expr, Kind, Value, each

_CLASS = "torch.optim.Optimizer"


def place_of(node: ast.AST, context: Context | None) -> tuple[Any, ...]:
    """A call, whichever run of the script it is in."""
    calls = [node]
    while context is not None:
        if context.node is not None:
            calls.append(context.node)
        context = context.up
    return tuple(calls)


def optimizers_by_use(run: Machine) -> frozenset[tuple[Any, ...]]:
    """The calls that give something unread that is used as an optimizer."""
    handed = {one for event in run.root.events() if "optimizer" in event.what for one in each(event["optimizer"])}
    stepped = {of for of, names in run.used.items() if "step" in names and len(names) > 1}
    return frozenset(
        place_of(*run.given_by[one])
        for one in handed | stepped
        if isinstance(one, Expr) and one in run.given_by and not is_known(run, one)
    )


def given(run: Machine, result: Value, given_: Given, node: ast.AST) -> Value:
    """What a call gives: an optimizer, where it is one by its use."""
    unread = [one for one in each(result) if isinstance(one, Expr) and one.op in {"unknown", "one of"}]
    if not unread:
        return result
    for one in unread:
        run.given_by.setdefault(one, (node, run.context))
    if not run.optimizers_by_use or place_of(node, run.context) not in run.optimizers_by_use:
        return result
    made = run.make(Kind.LIBRARY, node, made_by=_CLASS)
    made_by_library(run, made, _CLASS, Given((parameters_in(run, given_.all()),)), node)
    return choose((condition, made if one in unread else one) for condition, one in options_of(result))
