"""Calls: functions of the script are run with what they are given; what they give back, and how they are left."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dsmigrate.codemod.analysis.attributes import instantiate
from dsmigrate.codemod.analysis.conditions import MAYBE, TRUE, Condition, Consulted, options_of
from dsmigrate.codemod.analysis.containers import is_open
from dsmigrate.codemod.analysis.events import Block, BlockKind
from dsmigrate.codemod.analysis.library import call_library, call_object, decorated, forward, library_method, opaque
from dsmigrate.codemod.analysis.machine import DEAD, Frame, Given, Machine, Stop, kept
from dsmigrate.codemod.analysis.moving import Move
from dsmigrate.codemod.analysis.roles import is_known, is_step, is_tracked
from dsmigrate.codemod.analysis.state import Changes, Place, choose
from dsmigrate.codemod.analysis.summaries.registry import CHOSEN, role_of_class
from dsmigrate.codemod.analysis.values import (
    NONE,
    UNBOUND,
    Bound,
    Choice,
    Const,
    Context,
    Expr,
    Kind,
    Lib,
    Member,
    Obj,
    Reads,
    Super,
    Tensor,
    Tup,
    Value,
    each,
    note_reads,
    noting_reads,
    reads_noted,
)
from dsmigrate.codemod.program.module import FunctionNode, names_of

DEFAULTS = ("defaults",)
"""The field of a function that holds its defaults, beside its attributes."""
_AGAIN = 2
"""Calls of a function within itself after which its arguments are taken for unknown, and then its result."""


def given(run: Machine, node: ast.Call) -> Given:
    """Work the arguments of a call out."""
    args: list[Value] = []
    named: dict[str, Value] = {}
    more: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            value = run.value(arg.value)
            items = run.exact_items(value)
            if items is None or more:
                more.append(value)
            else:
                args.extend(items)
        else:
            args.append(run.value(arg))
    for keyword in node.keywords:
        value = run.value(keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, Obj) and value.kind is Kind.DICT and not is_open(value):
            named.update({str(key): item for key, item in value.fields.items() if isinstance(key, str)})
        else:
            more.append(value)
    return Given(tuple(args), named, tuple(more))


def call(run: Machine, function: Value, given_: Given, node: ast.AST) -> Value:
    """Call a value; of several, each under its condition."""
    function = run.settle(function)
    match function:
        case Choice():
            return run.values_of(
                [
                    (condition, partial(run.call, option, given_, node))
                    for condition, option in _callable(options_of(function))
                ],
                node,
            )
        case Obj(kind=Kind.FUNCTION):
            return run.call_function(function, given_, node)
        case Bound():
            return run.call_function(function.function, given_.behind(function.instance), node)
        case Obj(kind=Kind.CLASS):
            return instantiate(run, function, given_, node)
        case Obj(kind=Kind.PARTIAL):

            def finished(inner: Value, first: Given) -> Callable[[], Value]:
                named = {**first.named, **given_.named}
                return lambda: run.call(
                    inner, Given((*first.args, *given_.args), named, (*first.more, *given_.more)), node
                )

            return run.values_of(
                [(condition, finished(inner, first)) for condition, inner, first in kept(function)], node
            )
        case Lib():
            return call_library(run, function.name, given_, node)
        case Member():
            return library_method(run, function.of, function.name, given_, node)
        case Expr() if is_known(run, function):
            return forward(run, function, "", given_, node)
        case Expr(op="field"):
            return library_method(run, function.args[0], function.args[1], given_, node)
        case Expr(op="getattr", args=(Lib(name=of), *_)) if role_of_class(f"{of}.{CHOSEN}") is not None:
            return call_library(run, f"{of}.{CHOSEN}", given_, node)
        case Tup() | Const(value=str() | bytes() | int() | float()) | Obj(kind=Kind.LIST | Kind.DICT | Kind.SET):
            run.stops.append(Stop(TRUE, is_error=True))
            return UNBOUND
        case Obj():
            return call_object(run, function, given_, node)
        case Tensor() if function.forwards:
            return Tensor(forwards=function.forwards)
    return opaque(run, function, given_, node)


def _callable(options: list[tuple[Condition, Value]]) -> list[tuple[Condition, Value]]:
    """Without None, of which a call raises."""
    return [pair for pair in options if pair[1] != NONE] or options


def call_member(run: Machine, of: Value, name: str, given_: Given, node: ast.AST) -> Value:
    """Call a method."""
    of = run.settle(of)
    if isinstance(of, Member) and isinstance(of.of, Tensor):  # of an attribute of what a forward gives
        of = of.of
    if isinstance(of, Choice):
        return run.values_of(
            [
                (condition, partial(run.call_member, option, name, given_, node))
                for condition, option in _callable(options_of(of))
            ],
            node,
        )
    if isinstance(of, Obj) and of.kind is Kind.INSTANCE and is_step(of, name):
        return library_method(run, of, name, given_, node)
    if isinstance(of, Obj | Super | Lib):
        found = run.attribute(of, name, node)
        if not (isinstance(found, Member) and found.of is of) and not (
            isinstance(found, Expr) and found.op == "field" and found.args[0] is of
        ):
            return run.call(found, given_, node)
    return library_method(run, of, name, given_, node)


def define_function(run: Machine, node: FunctionNode) -> Value:
    """The function that a ``def`` or lambda makes, with its decorators applied."""
    frame = run.frame
    taken = node.args
    outer = frame
    while outer.is_class and outer.outer is not None:
        outer = outer.outer
    outer.obj.data["captured"] = True
    made = run.make(
        Kind.FUNCTION,
        node,
        name=getattr(node, "name", "lambda"),
        frame=outer,
        owner=frame.obj if frame.is_class else None,
        role="",
    )
    positional = [arg.arg for arg in (*taken.posonlyargs, *taken.args)]
    named = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    defaults = [
        *zip(positional[len(positional) - len(taken.defaults) :], taken.defaults, strict=True),
        *((arg.arg, default) for arg, default in named if default is not None),
    ]
    if defaults:
        run.put(made, DEFAULTS, Tup(tuple(Tup((Const(name), run.value(default))) for name, default in defaults)))
    value: Value = made
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in reversed(node.decorator_list):
            value = decorated(run, run.value(decorator), value, decorator)
    return value


def _is_plain(run: Machine, given_: Given) -> bool:
    """Whether a call is given nothing but data of which nothing is known."""
    things = [one for value in given_.all() for one in run.things_in(value)]
    return bool(things) and all(isinstance(one, Expr) and not is_tracked(run, one) for one in things)


def call_function(
    run: Machine, function: Obj, given_: Given, node: ast.AST, *, on_yield: Callable[[Value], Value] | None = None
) -> Value:
    """Run a function of the script."""
    definition = function.node
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = names_of(definition)
    run.called.add(function.data["frame"].module)
    if names.is_generator and on_yield is None:
        made = run.make(Kind.GENERATOR, node, tag=f"generator {id(definition)}")
        run.keep(made, function, given_)
        return made
    again = sum(frame.node is definition for frame in run.frames)
    if again > _AGAIN or (again and _is_plain(run, given_)):  # what it does with such data it has been seen to do
        return run.unread(node, given_.all())
    if again == _AGAIN:
        given_ = _forgotten(run, given_, node)
    context = run.context
    run.context = context.below(node)
    try:
        if on_yield is not None:
            return _run(run, function, given_, node, on_yield)
        return _remembered(run, function, given_, node)
    finally:
        run.context = context


@dataclass(slots=True, eq=False)
class _Memory:
    """What a call did: on what it looked at, what it gave, wrote and made happen."""

    context: Context
    held: tuple[tuple[Place, Value], ...]
    versions: tuple[tuple[Obj, int], ...]
    consulted: Consulted
    fresh: frozenset[Obj]
    value: Value
    changes: Changes
    block: Block | None
    stops: tuple[Stop, ...]
    required: tuple[tuple[tuple[Condition, ...], Condition], ...]
    is_of_here: bool | None = None
    """Whether what it looked at comes from an earlier call from the same place; None: that was not asked yet."""

    def sees(self) -> bool:
        """Whether all things that the call looked at are as they were then."""
        return all(obj.own.get(key, UNBOUND) is value for (obj, key), value in self.held) and all(
            obj.version == version for obj, version in self.versions
        )

    def is_of_now(self, run: Machine) -> bool:
        """Whether all that the call looked at is as it was then."""
        return self.sees() and run.assumed.is_as(self.consulted)

    def moved(self, run: Machine, given_: Given) -> _Memory | None:
        """The same of a call from here; None where what it looked at is of where it was called from, or not as then."""
        move = Move(run, self.fresh, self.context, run.context)
        if self.is_of_here is None:
            whole = (value for obj, _ in self.versions for value in obj.own.values())
            self.is_of_here = move.concerns((*given_.all(), *(value for _, value in self.held), *whole))
        if self.is_of_here:
            return None
        consulted = {move.of(atom): answer for atom, answer in self.consulted.items()}
        if not run.assumed.is_as(consulted):
            return None
        kept_ = {
            (obj, key): value
            for (obj, key), value in self.changes.items()
            if obj is not run.state.made or key.kind is not Kind.FRAME or key.data.get("captured")
        }
        return _Memory(
            run.context,
            self.held,
            self.versions,
            consulted,
            frozenset(map(move.of, (one for one in self.fresh if one.kind is not Kind.FRAME))),
            move.of(self.value),
            {(move.of(obj), move.of(key)): move.of(value) for (obj, key), value in kept_.items()},
            None if self.block is None else replace(move.block(self.block, run.block), module=run.frame.module),
            tuple(replace(one, condition=move.condition(one.condition)) for one in self.stops),
            tuple((tuple(map(move.condition, around)), move.condition(alive)) for around, alive in self.required),
        )


_WORTH = 40
"""Steps of a call from which on it is remembered."""
_MOST = 4
"""What is remembered of a call on different states."""


def _remembered(run: Machine, function: Obj, given_: Given, node: ast.AST) -> Value:
    """Run a function, or say what it did when it was called with the same, on the same state, before.

    What is remembered of a call stands under where it was called from, and under None for calls from anywhere.
    """
    key = (function, given_.args, tuple(given_.named.items()), given_.more, run.loops, bool(run.in_forward))
    here = (run.context, key)
    for memory in run.memory.get(here) or ():
        if memory.is_of_now(run):
            return _recalled(run, memory)
    for memory in run.memory.get((None, key)) or ():
        if memory.context is not run.context and memory.sees():
            moved = memory.moved(run, given_)
            if moved is not None:
                run.required += (((*run.conditions, *around), alive) for around, alive in moved.required)
                return _recalled(run, moved)
    reads: Reads = set()
    fresh: set[Obj] = set()
    noting_reads(reads)
    run.fresh.append(fresh)
    mark, steps, at, ahead = run.state.mark(), run.steps, len(run.block.items), len(run.stops)
    noted, required = (run.landmarks, len(run.paths)), len(run.required)
    try:
        with run.assumed.noting() as consulted:
            value = _run(run, function, given_, node, None)
    finally:
        reads_noted()
        run.fresh.pop()
        if run.fresh:
            run.fresh[-1] |= fresh
        reads = {one for one in reads if (one[0] if isinstance(one, tuple) else one) not in fresh}
        note_reads(reads)
    made = run.block.items[at:]
    block = made[0] if len(made) == 1 and isinstance(made[0], Block) else None
    if run.steps - steps >= _WORTH and (not made or block is not None):
        held = run.state.values_at(mark, (one for one in reads if isinstance(one, tuple)))
        versions = run.state.versions_at(mark, (one for one in reads if isinstance(one, Obj)))
        changes = run.state.changes(mark)
        memory = _Memory(
            run.context,
            tuple(held.items()),
            tuple(versions.items()),
            consulted,
            frozenset(fresh),
            value,
            changes,
            block,
            tuple(run.stops[ahead:]),
            tuple((around[len(run.conditions) :], alive) for around, alive in run.required[required:]),
        )
        stores = [run.memory.setdefault(here, [])]
        if noted == (run.landmarks, len(run.paths)):  # else it is told of where it was called from
            stores.append(run.memory.setdefault((None, key), []))
        for store in stores:
            store.insert(0, memory)
            del store[_MOST:]
    return value


def _recalled(run: Machine, memory: _Memory) -> Value:
    note_reads(place for place, _ in memory.held)
    note_reads(obj for obj, _ in memory.versions)
    run.assumed.note(memory.consulted)
    if run.fresh:
        run.fresh[-1] |= memory.fresh
    run.state.apply(memory.changes)
    if memory.block is not None:
        run.happen_again(memory.block)
    run.stops += memory.stops
    return memory.value


def _run(run: Machine, function: Obj, given_: Given, node: ast.AST, on_yield: Callable[[Value], Value] | None) -> Value:
    definition = function.node
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    outer: Frame = function.data["frame"]
    obj = run.make(Kind.FRAME, definition)
    owner = function.data["owner"]
    frame = Frame(obj, definition, outer.module, outer.top, outer, names_of(definition), owner, on_yield=on_yield)
    frame.mark = run.state.mark()
    frame.conditions = len(run.conditions)
    bound = _arguments(run, definition, function, given_, node)
    if bound is None:
        run.stops.append(Stop(TRUE, is_error=True))
        return NONE
    if bound:
        frame.first = next(iter(bound.values()))
    assumptions = run.assumed.mark()
    loops = run.loops
    caller = run.frame.module
    names = run.names_here()
    run.frames.append(frame)
    try:
        for name, value in bound.items():
            run.put(obj, name, value)
        with contextlib.ExitStack() as around:
            block = around.enter_context(run.inside(BlockKind.CALL, node, function, caller))
            block.names = names
            for region in function.data.get("regions", ()):
                around.enter_context(run.inside(BlockKind.WITH, region.node, region))
            if isinstance(definition, ast.Lambda):
                block.result = run.value(definition.body)
                return block.result
            alive = run.body(definition.body)
        block.result = _left(run, frame, alive)
        return block.result
    finally:
        run.frames.pop()
        run.assumed.forget(assumptions)
        run.loops = loops


def _left(run: Machine, frame: Any, alive: Any) -> Value:
    """Go on from where the ways out of a function meet; gives what it returns."""
    exits = frame.exits
    ways: list[tuple[Any, Changes]] = [(one.condition, one.changes) for one in exits]
    values: list[tuple[Any, Value]] = [(one.condition, one.value) for one in exits]
    if alive is not DEAD:
        ways.append((alive, run.state.changes(frame.mark)))
        values.append((alive, NONE))
    elif not exits:
        ways.append((alive, run.state.changes(frame.mark)))
    comes_back = bool(exits) or alive is not DEAD
    run.stops += (
        [replace(one, condition=MAYBE) if one.condition is TRUE else one for one in frame.stops]
        if comes_back
        else [Stop(TRUE, all(one.is_error for one in frame.stops))]
    )
    run.state.undo(frame.mark)
    living = {one.obj for one in run.frames} - {frame.obj}  # a generator runs its caller's lines where it yields
    run.meet([(condition, _outlasting(changes, living)) for condition, changes in ways], frame.node)
    return choose(values)


def _outlasting(changes: Changes, living: set[Obj]) -> Changes:
    """The changes that are left of a call: not its names, unless a function in it knows them."""
    return {
        place: value
        for place, value in changes.items()
        if place[0].kind is not Kind.FRAME
        or place[0].data.get("captured")
        or place[0].node is None
        or place[0] in living
    }


def _forgotten(run: Machine, given_: Given, node: ast.AST) -> Given:
    """Arguments of which plain data is unknown, so that a function that calls itself comes to an end."""

    def plain(value: Value, tag: str) -> Value:
        return (
            run.unread(node, [value], tag=tag) if all(isinstance(one, Const | Expr) for one in each(value)) else value
        )

    args = tuple(plain(value, str(index)) for index, value in enumerate(given_.args))
    return Given(args, {name: plain(value, name) for name, value in given_.named.items()}, given_.more)


def _arguments(run: Machine, node: FunctionNode, function: Obj, given_: Given, at: ast.AST) -> dict[str, Value] | None:
    """What the parameters of a function are bound to; None where one that it needs is not given: Python raises.

    What a decorator gives is not seen in the call.
    """
    taken = node.args
    positional = [arg.arg for arg in (*taken.posonlyargs, *taken.args)]
    found: dict[str, Value] = dict(zip(positional, given_.args, strict=False))
    if taken.vararg is not None:
        rest = given_.args[len(positional) :]
        if given_.more:
            rest_list = run.make(Kind.LIST, at, tag=f"*{id(node)}", open=True)
            run.put(rest_list, "*", choose([(TRUE, one) for one in (*rest, run.unread(at, given_.more, tag="*"))][:1]))
            found[taken.vararg.arg] = rest_list if not rest else Tup(rest)
        else:
            found[taken.vararg.arg] = Tup(rest)
    names = {*positional, *(arg.arg for arg in taken.kwonlyargs)}
    found.update({name: value for name, value in given_.named.items() if name in names})
    if taken.kwarg is not None:
        rest_dict = run.make(Kind.DICT, at, tag=f"**{id(node)}", open=bool(given_.more))
        for name, value in given_.named.items():
            if name not in names:
                run.put(rest_dict, name, value)
        if given_.more:
            run.put(rest_dict, "*", run.unread(at, given_.more, tag="**"))
        found[taken.kwarg.arg] = rest_dict
    defaults = function.get(DEFAULTS)
    for pair in defaults.items if isinstance(defaults, Tup) else ():
        assert isinstance(pair, Tup)
        said, default = pair.items
        assert isinstance(said, Const)
        name = str(said.value)
        if name not in found:
            found[name] = choose_default(run, default, given_, at, name) if given_.more else default
    missing = [name for name in names if name not in found]
    if missing and not given_.more and not getattr(node, "decorator_list", ()):
        return None
    found.update((name, run.unread(at, given_.more, tag=name)) for name in missing)
    return found


def choose_default(run: Machine, default: Value, given_: Given, at: ast.AST, name: str) -> Value:
    """A default that ``**kwargs`` may replace."""
    return choose([(MAYBE, default), (MAYBE, run.unread(at, given_.more, tag=name))])
