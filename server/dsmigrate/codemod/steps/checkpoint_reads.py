"""Reads of a checkpoint that are resumed from, and those that only look something up in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found, items_of
from dsmigrate.codemod.steps.checkpoint_helpers import need_places, need_reading
from dsmigrate.codemod.steps.placed_reads import place_of
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_DEPTH = 8
_NO_RESUME = cst.Arg(
    cst.Name("False"),
    keyword=cst.Name("resume"),
    equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
)


def read_instead(plan: Plan, found: Found, load: cst.Call) -> None:
    """``torch.load(path)`` becomes ``read_checkpoint(path)``, which asks for the resume only where states are loaded from it."""
    looks_up = bool(found.loads) and load not in found.loads and load not in _reached(plan, found)
    if looks_up:
        need_reading(plan)

    placed = place_of(plan, load)
    if placed is not None:
        need_places(plan)

    def read(call: Node) -> Node:
        path = cst.Arg(call.args[0].value)  # type: ignore[attr-defined]
        where = [] if placed is None else [_NO_RESUME.with_changes(value=placed, keyword=cst.Name("map_location"))]
        return cst.Call(cst.Name("read_checkpoint"), [path, *where, *([_NO_RESUME] if looks_up else [])])

    plan.edits.replace(load, read)
    plan.handled.add(load)


def _reached(plan: Plan, found: Found) -> set[Node]:
    """The calls whose value may come to a ``load_state_dict`` of the model, a part of it or the optimizer."""
    known: set[Node] | None = plan.facts.get("reaches_a_load")
    if known is None:
        known = plan.facts["reaches_a_load"] = set(_leading_to(plan, _loading(found)))
    return known


def _loading(found: Found) -> Iterable[cst.Call]:
    return (*found.optimizer_loads, *found.model_loads, *found.part_loads)


def _leading_to(plan: Plan, loads: Iterable[cst.Call]) -> Iterator[cst.Call]:
    """All calls within what is loaded, through what its variables may be bound to before."""
    queue: list[tuple[Node, Statement, int]] = [
        (arg.value, plan.tree.statement(call), _DEPTH) for call in loads for arg in call.args
    ]
    seen: set[object] = set()
    while queue:
        node, use, depth = queue.pop()
        for sub in descendants(node):
            if isinstance(sub, cst.Call):
                yield sub
            for place in _places(plan, sub, use.function):
                if not depth or (place, use.node) in seen:
                    continue
                seen.add((place, use.node))
                bindings = [b for b in plan.flow.by_place.get(place, ()) if not _is_behind(b.statement, use)]
                queue.extend((b.value, b.statement, depth - 1) for b in bindings)
                queue.extend((value, where, depth - 1) for value, where in items_of(plan, place))


def _places(plan: Plan, node: Node, function: Function) -> Iterator[Place]:
    """The variable an expression names, or what a function of the script that it calls returns."""
    place = plan.flow.place(node, function)
    if place is not None:
        yield place
    callee = plan.flow.callee(node) if isinstance(node, cst.Call) else None
    if callee is not None:
        yield from (plan.flow.returned(callee, index) for index in (None, *range(_DEPTH)))


def _is_behind(statement: Statement, use: Statement) -> bool:
    """Whether a statement of the same function comes after a use, and no loop leads from it to the use again."""
    if statement.function is not use.function or statement.order <= use.order:
        return False
    loops = {outer.node for outer in use.enclosing() if isinstance(outer.node, cst.For | cst.While)}
    return not any(outer.node in loops for outer in statement.enclosing())
