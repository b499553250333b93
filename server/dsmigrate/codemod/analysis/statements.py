"""Statements: what each does; both arms of what cannot be decided are run, loops until nothing new is learnt."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from dsmigrate.codemod.analysis.attributes import define_class
from dsmigrate.codemod.analysis.calls import define_function
from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, TRUE, Condition, Literal, both, either
from dsmigrate.codemod.analysis.events import BlockKind
from dsmigrate.codemod.analysis.expressions import augmented, delete
from dsmigrate.codemod.analysis.iteration import each_item
from dsmigrate.codemod.analysis.machine import DEAD, Exit, Machine
from dsmigrate.codemod.analysis.managers import within
from dsmigrate.codemod.analysis.state import Changes
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Lazy, Obj, Value, may_vary

# -- the kinds of statements -----------------------------------------------------------------------------------------


def _expression(run: Machine, node: ast.Expr) -> Condition:
    run.value(node.value)
    return TRUE


def _assign(run: Machine, node: ast.Assign) -> Condition:
    value = run.value(node.value)
    for target in node.targets:
        run.bind(target, value)
    return TRUE


def _annotated(run: Machine, node: ast.AnnAssign) -> Condition:
    if node.value is not None:
        run.bind(node.target, run.value(node.value))
    elif run.frame.is_class and isinstance(node.target, ast.Name):
        run.frame.obj.data.setdefault("annotated", []).append(node.target.id)
    if run.frame.is_class and isinstance(node.target, ast.Name) and node.value is not None:
        run.frame.obj.data.setdefault("annotated", []).append(node.target.id)
    return TRUE


def _augmented(run: Machine, node: ast.AugAssign) -> Condition:
    augmented(run, node)
    return TRUE


def _if(run: Machine, node: ast.If) -> Condition:
    condition = run.truth(run.value(node.test))
    return run.branch(condition, lambda: run.body(node.body), lambda: run.body(node.orelse), node)


def _while(run: Machine, node: ast.While) -> Condition:
    def turn() -> Condition:
        condition = run.holds(run.truth(run.value(node.test)))
        if condition is FALSE:
            return DEAD
        if condition is TRUE:
            return run.body(node.body)
        with run.assuming(condition, node.test):
            return run.body(node.body)

    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    alive = run.loop(node, None, turn, may_end=not endless)
    return run.body(node.orelse) if node.orelse and alive is TRUE else alive


def _for(run: Machine, node: ast.For | ast.AsyncFor) -> Condition:
    over = run.value(node.iter)
    alive = each_item(run, node, over, lambda item: (run.bind(node.target, item), run.body(node.body))[1])
    return run.body(node.orelse) if node.orelse and alive is TRUE else alive


def _with(run: Machine, node: ast.With | ast.AsyncWith) -> Condition:
    return within(run, node, list(node.items), lambda: run.body(node.body))


def _try(run: Machine, node: ast.Try) -> Condition:
    mark = run.state.mark()
    exits = len(run.frame.exits)
    with run.inside(BlockKind.TRY, node):
        alive = run.body(node.body)
        if alive is not DEAD and node.orelse:
            alive = both(alive, run.body(node.orelse))
    through = run.state.changes(mark)
    touched = [through, *(one.changes for one in run.frame.exits[exits:])]
    run.state.undo(mark)
    ways: list[tuple[Condition, Changes]] = [] if alive is DEAD else [(MAYBE if node.handlers else TRUE, through)]
    for handler in node.handlers:
        run.meet([(MAYBE, {}), *((MAYBE, changes) for changes in touched)], handler)
        with run.assuming(MAYBE, handler, kind=BlockKind.HANDLER):
            if handler.name:
                run.bind_name(handler.name, run.unread(handler, tag="error"))
            left = run.body(handler.body)
        if left is not DEAD:
            ways.append((MAYBE, run.state.changes(mark)))
            alive = TRUE
        run.state.undo(mark)
    if not ways:
        alive = DEAD
    else:
        run.meet(ways, node)
    if node.finalbody:
        left = run.body(node.finalbody)
        alive = both(alive, left)
    return alive


def _return(run: Machine, node: ast.Return) -> Condition:
    value = NONE if node.value is None else run.value(node.value)
    frame = run.frame
    frame.exits.append(Exit(both(*run.conditions[frame.conditions :]), run.state.changes(frame.mark), value))
    return DEAD


def _raise(run: Machine, node: ast.Raise) -> Condition:
    if node.exc is not None:
        run.value(node.exc)
    return DEAD


def _break(run: Machine, node: ast.Break) -> Condition:  # noqa: ARG001
    turn = run.frame.loops[-1] if run.frame.loops else None
    if turn is not None:
        turn.breaks.append(Exit(both(*run.conditions[turn.conditions :]), run.state.changes(turn.mark)))
    return DEAD


def _continue(run: Machine, node: ast.Continue) -> Condition:  # noqa: ARG001
    turn = run.frame.loops[-1] if run.frame.loops else None
    if turn is not None:
        turn.continues.append(Exit(both(*run.conditions[turn.conditions :]), run.state.changes(turn.mark)))
    return DEAD


def _assert(run: Machine, node: ast.Assert) -> Condition:
    condition = run.truth(run.value(node.test))
    run.assume(run.holds(condition))
    return TRUE


def _delete(run: Machine, node: ast.Delete) -> Condition:
    for target in node.targets:
        delete(run, target)
    return TRUE


def _import(run: Machine, node: ast.Import) -> Condition:
    for alias in node.names:
        found = run.imported(alias.name)
        if alias.asname:
            run.bind_name(alias.asname, found)
        else:
            head = alias.name.split(".")[0]
            run.bind_name(head, run.imported(head))
    return TRUE


def _import_from(run: Machine, node: ast.ImportFrom) -> Condition:
    base = node.module or ""
    if node.level:
        package = run.frame.module.package
        if run.frame.module.name == "__main__":
            package = ""
        for _ in range(node.level - 1):
            package = package.rpartition(".")[0]
        base = ".".join(filter(None, (package, base)))
    source = run.imported(base) if base else None
    for alias in node.names:
        if alias.name == "*":
            if source is not None:
                stars = run.frame.top.data["stars"]
                if source not in stars:
                    stars.append(source)
            continue
        if alias.name == "ds_compat":
            value: Value = run.imported(alias.name)
        elif isinstance(source, Obj):
            if alias.name in source.own:
                value = source.own[alias.name]
            else:
                inner = run.project.find(f"{base}.{alias.name}")
                is_package = source.module is not None and source.module.path.endswith("__init__.py")
                value = run.imported(f"{base}.{alias.name}") if inner and is_package else Lazy(source, alias.name)
        else:
            full = ".".join(filter(None, (base, alias.name)))
            value = run.imported(full)
        run.bind_name(alias.asname or alias.name, value)
    return TRUE


def _function(run: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Condition:
    run.bind_name(node.name, define_function(run, node))
    return TRUE


def _class(run: Machine, node: ast.ClassDef) -> Condition:
    run.bind_name(node.name, define_class(run, node))
    return TRUE


def _match(run: Machine, node: ast.Match) -> Condition:
    subject = run.value(node.subject)

    def rest(cases: list[ast.match_case]) -> Condition:
        if not cases:
            return TRUE
        case, *others = cases
        condition = _pattern(run, case.pattern, subject)
        if case.guard is not None:
            condition = both(condition, run.truth(run.value(case.guard)))
        return run.branch(condition, lambda: run.body(case.body), lambda: rest(others), node)

    return rest(node.cases)


def _pattern(run: Machine, pattern: ast.pattern, subject: Value) -> Condition:
    match pattern:
        case ast.MatchValue():
            return run.truth(run.compared(ast.Eq(), subject, run.value(pattern.value)))
        case ast.MatchSingleton():
            return run.truth(run.compared(ast.Is(), subject, Const(pattern.value)))
        case ast.MatchOr():
            return either(*(_pattern(run, one, subject) for one in pattern.patterns))
        case ast.MatchAs(pattern=None, name=None):
            return TRUE
        case ast.MatchAs(pattern=None):
            run.bind_name(pattern.name, subject)
            return TRUE
        case ast.MatchAs():
            found = _pattern(run, pattern.pattern, subject)
            run.bind_name(pattern.name, subject)
            return found
    for sub in ast.walk(pattern):
        if isinstance(sub, ast.MatchAs | ast.MatchStar) and sub.name:
            run.bind_name(sub.name, run.unread(sub, [subject]))
    return Literal(Expr("matches", pattern, subject, varies=may_vary(subject), loops=frozenset(run.loops)))


def _nothing(run: Machine, node: ast.stmt) -> Condition:  # noqa: ARG001
    return TRUE


STATEMENTS: dict[type[ast.stmt], Callable[[Machine, Any], Condition]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Match: _match,
    ast.Global: _nothing,
    ast.Nonlocal: _nothing,
    ast.Pass: _nothing,
}
if hasattr(ast, "TypeAlias"):
    STATEMENTS[ast.TypeAlias] = _nothing
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = _try
