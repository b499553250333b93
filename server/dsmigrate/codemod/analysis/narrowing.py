"""What a name may be where a test of it has come out: no None behind ``x is not None``, however little else is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import FALSE, options_of
from dsmigrate.codemod.analysis.conditions import negate as opposite
from dsmigrate.codemod.analysis.machine import Frame, Machine, Narrowed
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.values import NONE, Choice, Kind, Obj, Value


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
            yield from _options(run, of, none=isinstance(op, ast.Is) is holds)
        case ast.Name() | ast.Attribute():
            yield from _options(run, test, true=holds)


def _options(
    run: Machine, of: ast.expr, *, none: bool | None = None, true: bool | None = None
) -> Iterator[tuple[str, Narrowed]]:
    place = _place(run, of)
    bound = place[0].own.get(place[1]) if place is not None else None
    if place is None or not isinstance(bound, Choice):
        return
    kept = []
    for condition, option in options_of(bound):
        if none is None and _runs_code(option):  # which the test has done already
            kept.append((condition, option))
            continue
        test = run.truth(option if none is None else run.compared(ast.Is(), option, NONE))
        if (test if none or true else opposite(test)) is not FALSE:
            kept.append((condition, option))
    if 0 < len(kept) < len(bound.options):
        yield ast.unparse(of), Narrowed(*place, bound, choose(kept))


def _runs_code(option: Value) -> bool:
    """Whether code of the script says if something counts as true."""
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
