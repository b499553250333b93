"""Going over things: loops, unpacking, and what each item of a loader, a model's parameters or a generator is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial

from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import MAYBE, TRUE, Condition, both, either, options_of, outside
from dsmigrate.codemod.analysis.containers import REST, is_open, items_of
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.library import item_of
from dsmigrate.codemod.analysis.machine import DEAD, UNROLLED, Exit, Given, Machine, OnYield, Stop, Turn, kept, sources
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.state import Changes, choose
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.values import (
    NONE,
    UNBOUND,
    Bound,
    Choice,
    Const,
    Expr,
    Kind,
    Obj,
    Tensor,
    Tup,
    Value,
    each,
    may_vary,
)

_RANGE = 1
"""Numbers of a range that is gone over one by one."""


def exact_items(run: Machine, value: Value) -> list[Value] | None:
    """The items of something of which each is known; None for anything else."""
    value = run.settle(value)
    match value:
        case Tup():
            return list(value.items)
        case Const(value=tuple(items)):
            return [Const(one) for one in items]
        case Obj(kind=Kind.LIST | Kind.SET) if not is_open(value):
            return items_of(value)
        case Obj(kind=Kind.DICT) if not is_open(value):
            return [Const(key) for key in value.fields]
        case Obj(kind=Kind.ITERATOR):
            return _exact_iterator(run, value)
    return None


def _exact_iterator(run: Machine, value: Obj) -> list[Value] | None:
    inner = sources(value)
    if not inner or value in inner:
        return None
    match value.made_by:
        case "dict.values" | "dict.keys" | "dict.items":
            held = run.settle(inner[0])
            if not isinstance(held, Obj) or is_open(held):
                return None
            pairs = [(Const(key), one) for key, one in held.fields.items()]
            if value.made_by == "dict.items":
                return [Tup(pair) for pair in pairs]
            return [one for _, one in pairs] if value.made_by == "dict.values" else [key for key, _ in pairs]
        case "enumerate":
            items = run.exact_items(inner[0])
            start = inner[1]
            if items is not None and isinstance(start, Const) and isinstance(start.value, int):
                return [Tup((Const(start.value + index), one)) for index, one in enumerate(items)]
        case "zip":
            lists = [found for one in inner if (found := run.exact_items(one)) is not None]
            if len(lists) == len(inner):
                return [Tup(tuple(pair)) for pair in zip(*lists, strict=False)]
        case "iter" | "reversed" | "sorted":
            items = run.exact_items(inner[0])
            return items if items is None or value.made_by != "reversed" else items[::-1]
        case "range":
            numbers = [one.value for one in inner if isinstance(one, Const) and isinstance(one.value, int)]
            if len(numbers) == len(inner) and 0 < len(numbers) < 4 and 0 not in numbers[2:]:
                turns = range(*numbers)
                return None if turns[_RANGE:] else [Const(number) for number in turns]  # len() is for small ones
    return None


def element(run: Machine, over: Value, loop: ast.AST) -> Value:
    """What stands for each item of something, in a loop over it."""
    over = run.settle(over)
    match over:
        case Choice():
            found = [run.element(option, loop) for option in each(over)]
            return choose((MAYBE, one) for one in found if one is not UNBOUND)
        case Tup():
            return choose((MAYBE, one) for one in over.items) if over.items else run.unread(loop)
        case Tensor():
            return replace(over, scaler=None, detached=False)
        case Obj(kind=Kind.LIST | Kind.SET):
            found = [*items_of(over), *([over.at(REST)] if over.has(REST) else [])]
            return run.settle(choose((MAYBE, one) for one in found)) if found else run.unread(loop, [over])
        case Obj(kind=Kind.DICT):
            return Expr("key", loop, loops=frozenset((loop,)))
        case Obj(kind=Kind.ITERATOR):
            return _of_iterator(run, over, loop)
        case Obj(kind=Kind.GENERATOR):
            return _yielded(run, over, loop)
        case Obj(kind=Kind.INSTANCE) if (
            _runs_code(run, over) and (made := run.call_member(over, "__iter__", Given(), loop)) is not over
        ):
            return run.element(made, loop)
        case Obj():
            return element_of_object(run, over, loop)
        case Const(value=str()):
            return Expr("each", over, loop, loops=frozenset((loop,)))
        case Expr() if over in run.sizes:
            run.event(Happening.BATCH, loop, loader=over)
    return Expr(
        "each",
        over,
        loop,
        varies=may_vary(over) or (isinstance(over, Expr) and over.op == "unknown"),
        loops=frozenset((loop,)),
    )


def _number(over: Obj, loop: ast.AST) -> Value:
    """What ``enumerate`` counts in a loop over it."""
    index = Expr("index", loop, over.made_by, loops=frozenset((loop,)))
    start = next(iter(sources(over)[1:]), Const(0))
    return (
        index
        if start == Const(0) or not isinstance(start, Const | Expr)
        else Expr("+", index, start, loops=index.loops)
    )


def _of_iterator(run: Machine, over: Obj, loop: ast.AST) -> Value:
    inner = sources(over)
    if not inner:
        return run.unread(loop)
    match over.made_by:
        case "enumerate":
            return Tup((_number(over, loop), run.element(inner[0], loop)))
        case "zip":
            return Tup(tuple(run.element(one, loop) for one in inner))
        case "range":
            return Expr(
                "index",
                loop,
                *(one if isinstance(one, Const | Expr) else "?" for one in inner),
                loops=frozenset((loop,)),
            )
        case "dict.items" | "dict.values":
            values = [
                one for held in each(run.settle(inner[0])) if isinstance(held, Obj) for one in held.fields.values()
            ]
            value = run.settle(choose((MAYBE, one) for one in values)) if values else run.unread(loop)
            return Tup((Expr("key", loop, loops=frozenset((loop,))), value)) if over.made_by == "dict.items" else value
        case "map":
            return run.call(inner[0], Given(tuple(run.element(one, loop) for one in inner[1:])), loop)
        case "element":
            return inner[0]
        case "named":
            return Tup((Expr("name", loop, loops=frozenset((loop,))), inner[0]))
    return run.element(inner[0], loop)


def unpacked(run: Machine, target: ast.Tuple | ast.List, value: Value) -> list[Value]:
    """What each of several targets gets of a value."""
    value = run.settle(value)
    count = len(target.elts)
    star = next((index for index, one in enumerate(target.elts) if isinstance(one, ast.Starred)), None)
    if isinstance(value, Choice):
        found, conditions = [], []
        for condition, option in options_of(value):
            ahead = len(run.stops)
            found.append(unpacked(run, target, option))
            conditions.append(condition)
            run.stops[ahead:] = [Stop(both(condition, stop.condition), stop.is_error) for stop in run.stops[ahead:]]
        return [choose(zip(conditions, column, strict=True)) for column in zip(*found, strict=True)]
    items = run.exact_items(value)
    if items is not None:
        if star is None and len(items) == count:
            return items
        if star is not None and len(items) >= count - 1:
            behind = count - star - 1
            middle = run.make(Kind.LIST, target, tag="star", open=False)
            for index, one in enumerate(items[star : len(items) - behind]):
                run.put(middle, index, one)
            return [*items[:star], middle, *items[len(items) - behind :]]
        run.stops.append(Stop(TRUE, is_error=True))  # so many items do not fit
    if isinstance(value, Tensor):
        return [value.part(index) if star is None else value for index in range(count)]
    if isinstance(value, Obj):
        one = run.element(value, target)
        return [one] * count
    if isinstance(value, Expr):
        return [item_of(run, value, Const(index), target) for index in range(count)]
    return [run.unread(target, [value], tag=str(index)) for index in range(count)]


def each_item(
    run: Machine,
    node: ast.AST,
    over: Value,
    turn: Callable[[Value], Condition],
    otherwise: Callable[[], Condition] = lambda: TRUE,
    *,
    most: int = UNROLLED,
) -> Condition:
    """Run something for each item: one by one where they are known, else in turns until nothing new is learnt.

    ``otherwise``: what is done where no turn leaves the loop. ``most``: known items up to which they are gone over one by one.
    """
    over = run.settle(over)
    if any(_runs_code(run, one) for one in each(over)):
        ends = _hands_on(run, node, over)
        if ends is not None:
            return run.loop(node, over, lambda: turn(_handed_on(run, node, over)), otherwise if ends else None)
    return _each_item(run, node, over, turn, otherwise, most)


def _hands_on(run: Machine, node: ast.AST, over: Value) -> bool | None:
    """Whether a loop ends by itself whose items code of the script hands on in a loop; None where that code does more.

    Where it only moves batches, it makes no difference that the body is not run where each is yielded.
    """
    mark, at, ahead, here = run.state.mark(), len(run.block.items), len(run.stops), set(run.block.around())
    in_loops: list[bool] = []

    def noted(_: Value) -> Condition:
        in_loops.append(any(block.kind is BlockKind.LOOP and block not in here for block in run.block.around()))
        return TRUE

    twin = run.twins.setdefault(node, copy(node))  # what is known of this loop's head is its body's doing
    fresh: set[Obj] = set()  # in a loop around they are not new in its second turn, and made anew all the same
    run.fresh.append(fresh)
    ends = _each_item(run, twin, over, noted, lambda: TRUE) is not DEAD
    run.fresh.pop()
    if run.fresh:
        run.fresh[-1] |= fresh
    events = [event for one in run.block.items[at:] for event in ([one] if isinstance(one, Event) else one.events())]
    changes = run.state.changes(mark)
    run.state.undo(mark)
    del run.block.items[at:], run.stops[ahead:]
    written = {obj for obj, _ in changes} - {run.state.made} - run.state.new_things(changes) - fresh
    return ends if any(in_loops) and not written and all(map(_is_of_data, events)) else None


def _is_of_data(event: Event) -> bool:
    if event.kind is Happening.PRECISION:
        return not any(isinstance(one, Obj) for one in each(event.what.get("of", NONE)))
    return event.kind in {Happening.BATCH, Happening.MOVED}


def _handed_on(run: Machine, node: ast.AST, over: Value) -> Value:
    return run.values_of([(condition, partial(run.element, one, node)) for condition, one in options_of(over)], node)


def _each_item(
    run: Machine,
    node: ast.AST,
    over: Value,
    turn: Callable[[Value], Condition],
    otherwise: Callable[[], Condition],
    most: int = UNROLLED,
) -> Condition:
    bare = {_gone_over(run, one) for one in each(over)} if isinstance(over, Choice) else set()
    if len(bare) == 1:  # with a progress bar on some ranks
        over = bare.pop()
    if isinstance(over, Choice) and any(_runs_code(run, one) for one in each(over)):
        options = [
            (condition, lambda one=one: each_item(run, node, one, turn, otherwise))
            for condition, one in options_of(over)
        ]
        return run.arms(options, node)
    if isinstance(over, Obj) and over.kind is Kind.GENERATOR:
        return _generated(run, node, over, turn, otherwise)
    if isinstance(over, Obj) and over.kind is Kind.ITERATOR and over.made_by in {"enumerate", "iter"}:
        inner = run.settle(next(iter(sources(over)), NONE))
        if any(_runs_code(run, one) for one in each(inner)):
            number = _number(over, node)
            numbered = (lambda item: turn(Tup((number, item)))) if over.made_by == "enumerate" else turn
            return each_item(run, node, inner, numbered, otherwise)
    if isinstance(over, Obj) and over.kind is Kind.INSTANCE and _runs_code(run, over):
        made = run.call_member(over, "__iter__", Given(), node)
        if made is not over:
            return each_item(run, node, made, turn, otherwise)
        return run.loop(node, over, lambda: turn(run.call_member(over, "__next__", Given(), node)), otherwise)
    items = run.exact_items(over)
    if items is not None and len(items) <= most:
        return _one_by_one(run, node, over, items, turn, otherwise)
    return run.loop(node, over, lambda: turn(run.element(over, node)), otherwise)


def _gone_over(run: Machine, over: Value) -> Value:
    """What an iterator takes its items from, one by one."""
    while isinstance(over, Obj) and over.kind is Kind.ITERATOR and over.made_by == "iter" and len(sources(over)) == 1:
        over = run.settle(sources(over)[0])
    return over


def _runs_code(run: Machine, over: Value) -> bool:
    """Whether code of the script is run when something is gone over, by itself or in an iterator around it."""
    if not isinstance(over, Obj):
        return False
    if over.kind is Kind.ITERATOR and over.made_by in {"enumerate", "iter"}:
        return any(_runs_code(run, one) for one in each(run.settle(next(iter(sources(over)), NONE))) if one is not over)
    if over.kind is Kind.INSTANCE and over.cls is not None:
        found = looked_up(over.cls, "__iter__")
        return found is not None and isinstance(found[0], Obj)
    return over.kind is Kind.GENERATOR


def _one_by_one(
    run: Machine,
    node: ast.AST,
    over: Value,
    items: Sequence[Value],
    turn: Callable[[Value], Condition],
    otherwise: Callable[[], Condition],
) -> Condition:
    frame = run.frame
    start, conditions = run.state.mark(), len(run.conditions)
    breaks: list[Exit] = []

    def go_on(index: int) -> Condition:
        if index == len(items):
            return otherwise()
        state = Turn(start, conditions)
        frame.loops.append(state)
        outer, run.unrolled = run.unrolled, f"{run.unrolled}[{index}]" if index else run.unrolled
        with run.inside(BlockKind.LOOP, node, over):
            left = turn(items[index])
        run.unrolled = outer
        frame.loops.pop()
        breaks.extend(state.breaks)
        ways: list[tuple[Condition, Changes]] = [(one.condition, one.changes) for one in state.continues]
        if left is not DEAD:
            ways.append((left, run.state.changes(start)))
        if not ways:
            return DEAD
        if state.continues:
            run.state.undo(start)
            run.meet(ways, node)
        alive = run.holds(either(*(condition for condition, _ in ways)))
        if alive is TRUE:
            return go_on(index + 1)
        with run.assuming(alive, node):
            return both(alive, go_on(index + 1))

    ended = go_on(0)
    if not breaks:
        return ended
    ways = [(one.condition, one.changes) for one in breaks]
    if ended is not DEAD:
        ways.append((ended, run.state.changes(start)))
    run.state.undo(start)
    run.meet(ways, node)
    return run.holds(either(*(condition for condition, _ in ways)))


def _generated(
    run: Machine,
    node: ast.AST,
    generator: Obj,
    turn: Callable[[Value], Condition],
    otherwise: Callable[[], Condition],
) -> Condition:
    """A loop over what a generator function yields: the body runs where it yields."""
    caller, context, loops = run.frame, run.context, run.loops
    start = run.state.mark()
    state = Turn(start, len(run.conditions))
    caller.loops.append(state)

    def here(item: Value) -> Value:
        inner = run.context, run.loops
        run.frames.append(caller)
        run.context, run.loops = context, (*run.loops, node)
        try:
            mark = run.state.mark()
            alive = turn(item)
            ways = [(one.condition, one.changes) for one in state.continues]
            state.continues.clear()
            if ways:
                if alive is not DEAD:
                    ways.append((alive, run.state.changes(mark)))
                run.state.undo(mark)
                run.meet(ways, node)
            elif alive is DEAD:
                run.stops.append(Stop(TRUE, is_error=True))
        finally:
            run.frames.pop()
            run.context, run.loops = inner
        return run.unread(node, tag="sent")

    try:
        ends = run_generator(run, generator, node, here)
    finally:
        caller.loops.pop()
        run.loops = loops
    ways = [(outside(one.condition, node), one.changes) for one in state.breaks]
    alive: Condition = DEAD
    if ends:
        alive = otherwise()
        if alive is not DEAD:
            ways.append((MAYBE if state.breaks else alive, run.state.changes(start)))
    if not ways:
        return DEAD
    if state.breaks:
        run.state.undo(start)
        run.meet(ways, node)
        return TRUE
    return alive


def element_of_object(run: Machine, of: Obj, loop: ast.AST) -> Value:
    """An item of a loader, of a model's modules, or of another object that is gone over."""
    role = role_of(of)
    if role is Role.LOADER:
        run.event(Happening.BATCH, loop, loader=of)
        return Tensor(varies=True, batch=())
    if of.data.get("groups_of") is not None:
        return run.settle(of.get(REST, NONE))
    if of.made_by in {"torch.nn.ModuleList", "torch.nn.Sequential"}:
        found = [value for key, value in of.fields.items() if isinstance(key, int) or key == REST]
        if found:
            return run.settle(choose((MAYBE, value) for value in found))
    if of.kind is Kind.INSTANCE and of.cls is not None:
        found_next = looked_up(of.cls, "__getitem__") or looked_up(of.cls, "__next__")
        if found_next is not None and isinstance(found_next[0], Obj):
            name = found_next[0].data["name"]
            index = (Expr("index", loop, loops=frozenset((loop,))),) if name == "__getitem__" else ()
            return run.call(Bound(found_next[0], of), Given(index), loop)
    return Expr("each", of, loop, varies=True, loops=frozenset((loop,)))


def run_generator(run: Machine, generator: Obj, node: ast.AST, on_yield: OnYield) -> bool:
    """Run what a generator function made, to its end; whether it comes to one."""
    ahead = len(run.stops)

    def gone_through(function: Value, given: Given) -> Callable[[], Value]:
        assert isinstance(function, Obj)
        return lambda: run.call_function(function, given, generator.node or node, on_yield=on_yield)

    run.values_of([(condition, gone_through(function, given)) for condition, function, given in kept(generator)], node)
    ends = all(stop.condition is not TRUE for stop in run.stops[ahead:])
    run.stops[ahead:] = [stop for stop in run.stops[ahead:] if stop.condition is not TRUE]
    return ends


def _yielded(run: Machine, generator: Obj, node: ast.AST) -> Value:
    """What stands for each item that a generator yields."""
    found: list[Value] = []

    def noted(value: Value) -> Value:
        found.append(value)
        return NONE

    run_generator(run, generator, node, noted)
    return choose((MAYBE, one) for one in found) if found else run.unread(node)
