"""Functions as values: handed on under other names, with some arguments filled by ``functools.partial``, or spawned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.tree import Function, Node

if TYPE_CHECKING:
    from dsmigrate.codemod.flow import Binding, Flow, Place

_PARTIAL = frozenset({"functools.partial"})


@dataclass(frozen=True, slots=True)
class Held:
    """A function that a place may hold, with its first ``filled`` positional arguments given already."""

    function: Function
    filled: int = 0


def is_partial(flow: Flow, node: Node) -> bool:
    """Whether an expression fills arguments of a function in advance."""
    return isinstance(node, cst.Call) and bool(flow.imports.names(node.func) & _PARTIAL) and bool(node.args)


def held_by(flow: Flow, node: Node, function: Function) -> list[Held]:
    """The functions of the tree that an expression may be, when it is a value rather than called."""
    if isinstance(node, cst.IfExp):
        return [*held_by(flow, node.body, function), *held_by(flow, node.orelse, function)]
    if isinstance(node, cst.Call) and is_partial(flow, node):
        given = sum(arg.keyword is None and not arg.star for arg in node.args[1:])
        return [Held(h.function, h.filled + given) for h in held_by(flow, node.args[0].value, function)]
    if not isinstance(node, cst.Name | cst.Attribute):
        return []
    place = flow.place(node, function)
    if place is not None and place in flow.held:
        return flow.held[place]
    found = flow.function_named(node, function)
    return [] if found is None else [Held(found)]


def note(flow: Flow, binding: Binding) -> bool:
    """Let the place of a binding hold the functions that its value may be; says whether that is news."""
    if binding.index is not None or binding.kind not in ("assign", "argument", "return"):
        return False
    own = flow.held.get(binding.place, [])
    news = [held for held in held_by(flow, binding.value, binding.function) if held not in own]
    if news:
        flow.held[binding.place] = [*own, *news]
    return bool(news)


def filled(flow: Flow, call: cst.Call) -> Iterator[tuple[Function, str, Node]]:
    """What a ``partial`` gives: the function, the parameter and the value of each argument that can be told."""
    if not is_partial(flow, call) or any(arg.star for arg in call.args):
        return
    for held in held_by(flow, call.args[0].value, flow.tree.statement(call).function):
        names = flow.positional(held.function)[held.filled :]
        for position, arg in enumerate(call.args[1:]):
            if arg.keyword is not None and arg.keyword.value in held.function.params:
                yield held.function, arg.keyword.value, arg.value
            elif arg.keyword is None and position < len(names):
                yield held.function, names[position], arg.value


def spawned(
    flow: Flow, target: Node | None, packed: Node | None, function: Function
) -> tuple[Function | None, list[tuple[Place, Node]]]:
    """The worker that a spawn starts, and what it is given behind the index of its process."""
    worker = flow.function_named(target, function) if target is not None else None
    if worker is None or not isinstance(packed, cst.Tuple | cst.List):
        return worker, []
    names = flow.positional(worker)[1:]
    return worker, [(("v", id(worker), n), e.value) for n, e in zip(names, packed.elements, strict=False)]
