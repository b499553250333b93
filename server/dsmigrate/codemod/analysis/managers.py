"""Context managers: regions of libraries, and managers that the script writes itself."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import TRUE, Condition
from dsmigrate.codemod.analysis.events import BlockKind
from dsmigrate.codemod.analysis.iteration import run_generator
from dsmigrate.codemod.analysis.library import what_is_entered
from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.values import NONE, Choice, Kind, Obj, Value


def within(
    run: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem], body: Callable[[], Condition]
) -> Condition:
    """Run a body within the managers of a ``with``, from the first on."""
    if not items:
        return body()
    first, *others = items
    manager = run.value(first.context_expr)

    def inner(entered: Value) -> Condition:
        if first.optional_vars is not None:
            run.bind(first.optional_vars, entered)
        return within(run, node, others, body)

    return entered_with(run, first.context_expr, manager, inner)


def entered_with(run: Machine, node: ast.AST, manager: Value, body: Callable[[Value], Condition]) -> Condition:
    """Run something within a manager."""
    manager = run.settle(manager)
    if isinstance(manager, Obj):
        if manager.kind is Kind.GENERATOR:
            return _generated(run, node, manager, body)
        if manager.kind is Kind.INSTANCE and manager.cls is not None:
            found = looked_up(manager.cls, "__enter__")
            if found is not None and isinstance(found[0], Obj):
                entered = run.call_member(manager, "__enter__", Given(), node)
                since = run.ways_out()
                with run.inside(BlockKind.WITH, node, manager):
                    alive = body(entered)
                leave = Given((NONE, NONE, NONE))
                run.finish(since, lambda: run.call_member(manager, "__exit__", leave, node))
                return alive
    if isinstance(manager, Choice) and any(
        isinstance(one, Obj) and one.kind is Kind.GENERATOR for _, one in manager.options
    ):
        options = [
            (condition, lambda one=one: entered_with(run, node, one, body)) for condition, one in manager.options
        ]
        return run.arms(options, node)
    entered = what_is_entered(run, manager, node)
    with run.inside(BlockKind.WITH, node, manager):
        return body(entered)


def _generated(run: Machine, node: ast.AST, generator: Obj, body: Callable[[Value], Condition]) -> Condition:
    """Within a generator function that ``contextlib.contextmanager`` makes a manager: the body runs where it yields."""
    caller, context = run.frame, run.context
    alive: list[Condition] = []

    def here(item: Value) -> Value:
        inner = run.context
        run.frames.append(caller)
        run.context = context
        try:
            alive.append(body(item))
        finally:
            run.frames.pop()
            run.context = inner
        return NONE

    run_generator(run, generator, node, here)
    return alive[0] if len(alive) == 1 else TRUE
