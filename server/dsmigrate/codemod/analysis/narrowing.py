"""What a name may be where a test of it has come out: no None behind ``x is not None``, however little else is known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, options_of
from dsmigrate.codemod.analysis.conditions import negate as opposite
from dsmigrate.codemod.analysis.machine import Frame, Machine, Narrowed
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.summaries.registry import TESTS
from dsmigrate.codemod.analysis.values import NONE, Choice, Kind, Lib, Obj, Value, each


@contextmanager
def narrowed(run: Machine, test: ast.expr, *, holds: bool, others: Iterable[ast.AST] = ()) -> Iterator[None]:
    """Run what is reached only where a test of names has come out one way. ``others``: what is run where it has not.

    What ``others`` bind anew is bound here to what is left of it, as both are one where they meet.
    """
    frame = run.frame
    before = frame.narrowed
    narrow(run, test, holds=holds)
    try:
        yield
        still = {
            said: known
            for said, known in frame.narrowed.items()
            if known is not before.get(said) and known.of.own.get(known.key) is known.bound
        }
        for one in (one for other in others for one in ast.walk(other)) if still else ():
            if isinstance(getattr(one, "ctx", None), ast.Store) and (known := still.pop(ast.unparse(one), None)):
                run.put(known.of, known.key, known.left)
    finally:
        frame.narrowed = before


def narrow(run: Machine, test: ast.expr, *, holds: bool) -> None:
    """Leave out, from here to the end of the block, what the names in a test cannot be where it has come out one way."""
    found = dict(_left(run, test, holds=holds))
    if found:
        run.frame.narrowed = {**run.frame.narrowed, **found}


def left_of_bound(frame: Frame, said: str, bound: Value) -> Value:
    """What something may be, of all that it is bound to: once it is bound anew, the tests of before say nothing."""
    known = frame.narrowed.get(said)
    return bound if known is None or known.bound is not bound else known.left


def _left(run: Machine, test: ast.expr, *, holds: bool) -> Iterator[tuple[str, Narrowed]]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _left(run, operand, holds=not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            for value in values:
                yield from _left(run, value, holds=holds)
        case ast.Compare(left=of, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            is_none = partial(run.compared, ast.Is(), right=NONE)
            yield from _options(
                run, of, lambda option: run.truth(is_none(option)), holds=isinstance(op, ast.Is) is holds
            )
        case ast.Call(func=ast.Name() as asks, args=[of, about], keywords=[]) if _runs_nothing(run, about):
            asked = run.settle(run.value(asks))
            answer = TESTS.get(asked.name) if isinstance(asked, Lib) else None
            if answer is not None:
                yield from _options(run, of, partial(_said, answer, run.settle(run.value(about))), holds=holds)
        case ast.Name() | ast.Attribute():
            yield from _options(
                run, test, lambda option: None if _runs_code(option) else run.truth(option), holds=holds
            )


def _options(
    run: Machine, of: ast.expr, test: Callable[[Value], Condition | None], *, holds: bool
) -> Iterator[tuple[str, Narrowed]]:
    """Leave out the options that a test, of which None means that nothing is known, cannot come out of that way."""
    place = _place(run, of)
    bound = place[0].own.get(place[1]) if place is not None else None
    if place is None or not isinstance(bound, Choice):
        return
    kept = []
    for condition, option in options_of(bound):
        found = test(option)
        if found is None or (found if holds else opposite(found)) is not FALSE:
            kept.append((condition, option))
    if 0 < len(kept) < len(bound.options):
        yield ast.unparse(of), Narrowed(*place, bound, choose(kept))


def _said(answer: Callable[[Value, Value], bool | None], about: Value, option: Value) -> Condition | None:
    """What ``hasattr`` or ``isinstance`` says of one option."""
    found = answer(option, about)
    return None if found is None else TRUE if found else FALSE


def _runs_nothing(run: Machine, about: ast.expr) -> bool:
    """Whether working an expression out again runs nothing: it is a name, a class of a module, or several of these."""
    match about:
        case ast.Constant() | ast.Name():
            return True
        case ast.Tuple(elts=parts):
            return all(_runs_nothing(run, part) for part in parts)
        case ast.Attribute(value=ast.Name() | ast.Attribute() as of):
            return _runs_nothing(run, of) and all(
                isinstance(one, Lib) or (isinstance(one, Obj) and one.kind is Kind.MODULE)
                for one in each(run.settle(run.value(of)))
            )
    return False


def _runs_code(option: Value) -> bool:
    """Whether code of the script says if something counts as true, which the test has run already."""
    cls = option.cls if isinstance(option, Obj) and option.kind is Kind.INSTANCE else None
    return cls is not None and any(looked_up(cls, name) is not None for name in ("__bool__", "__len__"))


def _place(run: Machine, of: ast.expr) -> tuple[Obj, str] | None:
    """Where a name of the function that is being run is bound, or an attribute of the one thing that such a name is bound to."""
    frame = run.frame.obj
    match of:
        case ast.Name(id=name) if name in frame.own:
            return frame, name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            holder = frame.own.get(name)
            if isinstance(holder, Obj) and holder.kind in {Kind.INSTANCE, Kind.NAMESPACE}:
                return holder, attribute
    return None
