"""Lengths that are the same for all ranks: a training under DDP would hang unless each of them had as many batches."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import loops_around
from dsmigrate.codemod.analysis.conditions import Condition, Literal, Several
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.machine import sources
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Choice, Expr, Kind, Member, Obj, Tensor, Tup, Value, each, may_vary


def gone_over(label: Value | None) -> Iterator[Value]:
    """What a loop goes over, and what that is made of."""
    for one in each(label) if label is not None else ():
        yield one
        if isinstance(one, Obj) and one.kind is Kind.ITERATOR:
            for inner in sources(one):
                yield from gone_over(inner)


def same_for_all(training: Training) -> frozenset[Value]:
    """What the loops of a training go over: as many turns for each rank."""
    loops = [loop for backward in training.backwards for loop in loops_around(backward)]
    innermost = {next(iter(loops_around(backward)), None) for backward in training.backwards}
    found = {one for loop in loops for one in gone_over(loop.label)}
    for event in training.events(Happening.BATCH):  # by code that hands the batches on
        if innermost & set(loops_around(event)):
            found |= set(each(event["loader"]))
    return frozenset(found)


def differs(value: Value | Condition, same: frozenset[Value]) -> bool:
    """Whether ranks may disagree on a value or a condition also where some things have the same length for all of them."""
    pending: list[Value | Condition] = [value]
    seen = set[Value | Condition]()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        match one:
            case Literal():
                pending += [one.atom] if one.varies else []
            case Several():
                pending += one.parts
            case Condition():
                if one.varies:
                    return True
            case Expr():
                if not one.varies or (one.op == "len" and one.args[0] in same):
                    continue
                parts = [arg for arg in one.args if isinstance(arg, Value) and may_vary(arg)]
                if not parts:
                    return True
                pending += parts
            case Tup():
                pending += one.items
            case Choice():
                pending += [part for option in one.options for part in option]
            case Member():
                pending.append(one.of)
            case Tensor() | Obj():
                if may_vary(one):
                    return True
    return False
