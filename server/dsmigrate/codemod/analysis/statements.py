"""Statements: what each does; both arms of what cannot be decided are run, loops until nothing new is learnt."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from dsmigrate.codemod.analysis.attributes import define_class
from dsmigrate.codemod.analysis.calls import define_function
from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, TRUE, Condition, Literal, both, either, negate
from dsmigrate.codemod.analysis.events import BlockKind
from dsmigrate.codemod.analysis.expressions import augmented, delete
from dsmigrate.codemod.analysis.iteration import each_item
from dsmigrate.codemod.analysis.library import library_name
from dsmigrate.codemod.analysis.machine import DEAD, Exit, Machine
from dsmigrate.codemod.analysis.managers import within
from dsmigrate.codemod.analysis.narrowing import narrow, narrowed
from dsmigrate.codemod.analysis.state import Changes
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Lazy, Lib, Obj, Value, each, may_vary

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
    if run.frame.is_class and isinstance(node.target, ast.Name) and not _is_of_class(node.annotation):
        run.frame.obj.data.setdefault("annotated", []).append(node.target.id)
    return TRUE


def _is_of_class(annotation: ast.expr) -> bool:
    """Whether an annotation says that a name is the class's, not a field of its instances: ``ClassVar[int]``."""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return isinstance(text, str) and text.partition("[")[0].rpartition(".")[2] == "ClassVar"


def _augmented(run: Machine, node: ast.AugAssign) -> Condition:
    augmented(run, node)
    return TRUE


def _if(run: Machine, node: ast.If) -> Condition:
    condition = run.truth(run.value(node.test))
    if not run.comes_back():
        return DEAD
    dead: set[bool] = set()

    def arm(body: list[ast.stmt], *, holds: bool) -> Condition:
        with narrowed(run, node.test, holds=holds, others=node.orelse if holds else node.body):
            left = run.body(body)
        if left is DEAD:
            dead.add(holds)
        return left

    left = run.branch(condition, partial(arm, node.body, holds=True), partial(arm, node.orelse, holds=False), node)
    if len(dead) == 1:
        narrow(run, node.test, holds=not dead.pop())
    return left


def _while(run: Machine, node: ast.While) -> Condition:
    def turn() -> Condition:
        condition = run.holds(run.truth(run.value(node.test)))
        if condition is FALSE or not run.comes_back():
            return DEAD
        if condition is TRUE:
            return run.body(node.body)
        with run.assuming(condition, node.test):
            return run.body(node.body)

    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    return run.loop(node, None, turn, None if endless else _otherwise(run, node))


def _for(run: Machine, node: ast.For | ast.AsyncFor) -> Condition:
    over = run.value(node.iter)
    if not run.comes_back():
        return DEAD

    def turn(item: Value) -> Condition:
        run.bind(node.target, item)
        return run.body(node.body)

    return each_item(run, node, over, turn, _otherwise(run, node))


def _otherwise(run: Machine, node: ast.For | ast.AsyncFor | ast.While) -> Callable[[], Condition]:
    """What is done where a loop comes to its end by itself."""
    return lambda: run.body(node.orelse)


def _with(run: Machine, node: ast.With | ast.AsyncWith) -> Condition:
    return within(run, node, list(node.items), lambda: run.body(node.body))


def _try(run: Machine, node: ast.Try) -> Condition:
    since, mark = run.ways_out(), run.state.mark()
    known = len(run.frame.stops)
    with run.inside(BlockKind.TRY, node):
        alive = run.body(node.body)
        asks = [one for one in node.body if not _is_plain(one)]
        fails = bool(node.handlers) and not (asks and all(_is_there(run, one) for one in asks))
        through = _caught(run, node, alive, mark, known) if fails else alive
        if alive is DEAD and through is TRUE and any(len(ways) > count for ways, count in since):
            through = MAYBE  # where an error came before the way out
        if node.orelse and alive is not DEAD and not fails:
            through = both(alive, run.body(node.orelse))
    if node.finalbody:
        ends: list[Condition] = []
        if through is DEAD:  # only ways out lead on: it runs on those
            ways = [(MAYBE, way.changes) for ways, count in since for way in ways[count:]]
            run.state.undo(mark)
            run.meet(ways, node)
        run.finish(since, lambda: ends.append(run.body(node.finalbody)))
        through = both(through, ends[0])
    return through


def _is_there(run: Machine, node: ast.stmt) -> bool:
    """Whether a statement only asks for what every torch has: ``from torch.cuda.amp import autocast``."""
    match node:
        case ast.Import():
            return all(alias.name in _IN_EVERY_TORCH for alias in node.names)
        case ast.ImportFrom(module=str(base), level=0):
            return all(f"{base}.{alias.name}" in _IN_EVERY_TORCH for alias in node.names)
        case ast.If():
            return all(_is_there(run, one) for one in (ast.Expr(node.test), *node.body, *node.orelse))
        case ast.Assign(targets=[ast.Name()]) | ast.Expr():
            return all(
                isinstance(one, ast.Constant)
                or (_asks(one) and isinstance(found := run.value(one), Lib) and found.name in _IN_EVERY_TORCH)
                for one in (
                    [node.value.left, *node.value.comparators] if isinstance(node.value, ast.Compare) else [node.value]
                )
            )
    return _is_plain(node)


def _asks(node: ast.expr) -> bool:
    """Whether an expression reads a name or an attribute, and does nothing else."""
    return isinstance(node, ast.Name | ast.Attribute) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr"
    )


_IN_EVERY_TORCH = frozenset(
    [
        *("torch", "torch.distributed", "torch.nn", "torch.multiprocessing", "torch.cuda.amp", "torch.cuda"),
        *("torch.cuda.amp.autocast", "torch.cuda.amp.GradScaler", "torch.nn.SyncBatchNorm"),
        *("torch.nn.parallel", "torch.nn.parallel.DistributedDataParallel", "torch.utils.data.distributed"),
    ]
)


def _caught(run: Machine, node: ast.Try, alive: Condition, mark: int, known: int) -> Condition:
    """Run the handlers of a body that has been run, and go on from where they and the body meet."""
    frame = run.frame
    catches_ends = any(_catches_ends(run, handler.type) for handler in node.handlers)
    frame.stops[known:] = [] if catches_ends else [stop for stop in frame.stops[known:] if not stop.is_error]
    on_the_way = run.state.written(mark)
    ways: list[tuple[Condition, Changes]] = []
    is_guard = len(node.handlers) == 1 and all(map(_is_of_guard, node.body))
    passes: Condition = Literal(Expr("passes", node)) if is_guard else MAYBE
    if alive is not DEAD:
        left = run.body(node.orelse) if node.orelse else TRUE
        if left is not DEAD:
            ways.append((passes, run.state.changes(mark)))
    run.state.undo(mark)
    for handler in node.handlers:
        run.state.may_be(on_the_way, (handler, run.context))
        with run.assuming(negate(passes), handler, kind=BlockKind.HANDLER):
            if handler.type is not None:
                run.block.label = run.value(handler.type)
            if handler.name:
                run.bind_name(handler.name, run.unread(handler, tag="error"))
            left = run.body(handler.body)
        if left is not DEAD:
            ways.append((negate(passes), run.state.changes(mark)))
        run.state.undo(mark)
    if not ways:
        return DEAD
    run.meet(ways, node)
    return alive if alive is not DEAD and alive.varies else TRUE


def _is_of_guard(node: ast.stmt) -> bool:
    """Whether a statement may be in a ``try`` that asks whether a package is there: that is so for the whole run."""
    return _is_plain(node) or isinstance(node, ast.Import | ast.ImportFrom)


def _is_plain(node: ast.stmt) -> bool:
    """Whether a statement does nothing, or binds names to a constant."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and all(isinstance(target, ast.Name) for target in node.targets)
    )


def _catches_ends(run: Machine, kinds: ast.expr | None) -> bool:
    """Whether a handler catches the end of the process too."""
    if kinds is None:
        return True
    names = {name for one in run.things_in(run.value(kinds)) for name in bases_of(one)}
    return bool(names & {"builtins.SystemExit", "builtins.BaseException"})


def _return(run: Machine, node: ast.Return) -> Condition:
    value = NONE if node.value is None else run.value(node.value)
    frame = run.frame
    frame.exits.append(Exit(both(*run.conditions[frame.conditions :]), run.state.changes(frame.mark), value))
    return DEAD


def _raise(run: Machine, node: ast.Raise) -> Condition:
    error = NONE if node.exc is None else run.value(node.exc)
    ends = any(isinstance(one, Lib | Obj) and _ENDS & {*bases_of(one)} for one in each(error))
    run.stop_here(TRUE, is_error=not ends)
    return DEAD


_ENDS = frozenset({"builtins.SystemExit", "builtins.KeyboardInterrupt"})


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
    condition = run.holds(run.truth(run.value(node.test)))
    if condition is FALSE:
        run.stop_here(TRUE, is_error=True)
        return DEAD
    run.assume(condition)
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
            if isinstance(value, Lib):
                value = library_name(full)
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
    if not run.comes_back():
        return DEAD

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
        case ast.MatchAs(pattern=None, name=str() as name):
            run.bind_name(name, subject)
            return TRUE
        case ast.MatchAs(pattern=ast.pattern() as inner, name=str() as name):
            found = _pattern(run, inner, subject)
            run.bind_name(name, subject)
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
