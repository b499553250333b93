"""Closed lists of values: the checks of config code that raise for every other value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dsmigrate.derivation.child.expressions import evaluate, iterated
from dsmigrate.derivation.child.values import Item, Known, items, known

if TYPE_CHECKING:
    from dsmigrate.derivation.child.walk import Frame


def asserted(test: ast.expr, frame: Frame) -> None:
    """``assert value in VALUES``, alone or after ``value is None or``."""
    for part in parts(test, ast.Or, ast.Is):
        membership(part, ast.In, frame)


def refused(node: ast.If, orelse: list[ast.stmt], frame: Frame) -> None:
    """``if value not in VALUES: raise`` and ``if value in VALUES: … else: raise``, and chains of ``==`` that end so."""
    if raises(node.body):
        for part in parts(node.test, ast.And, ast.IsNot):
            membership(part, ast.NotIn, frame)
    elif raises(orelse):
        membership(node.test, ast.In, frame)
    chain(node, orelse, frame)


def raises(body: list[ast.stmt]) -> bool:
    """Return whether a block does nothing but raise."""
    return bool(body) and isinstance(body[0], ast.Raise)


def parts(test: ast.expr, joined: type[ast.boolop], none_test: type[ast.cmpop]) -> list[ast.expr]:
    """Return the one test that is joined with nothing but tests for None; none when there are others."""
    values = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, joined) else [test]
    rest = [value for value in values if not is_compared(value, none_test)]
    return rest if len(rest) == 1 else []


def is_compared(node: ast.expr, operation: type[ast.cmpop]) -> bool:
    """Return whether ``node`` is one comparison of this kind."""
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], operation)


def membership(test: ast.expr, operation: type[ast.cmpop], frame: Frame) -> None:
    """Note the values of ``value in VALUES`` or ``value not in VALUES``."""
    if not is_compared(test, operation) or not isinstance(test, ast.Compare):
        return
    turns = [known(turn) for turn in iterated(evaluate(test.comparators[0], frame))]
    if turns and all(turn is not None for turn in turns):
        note(items(evaluate(test.left, frame)), [turn.value for turn in turns if turn is not None], frame)


def chain(node: ast.If, orelse: list[ast.stmt], frame: Frame) -> None:
    """Note the values of ``if value == A: … elif value == B: … else: raise``."""
    found: list[Any] = []
    subjects: list[Item] = []
    test, rest = node.test, orelse
    while True:
        if is_compared(test, ast.Eq) and isinstance(test, ast.Compare):
            subjects += items(evaluate(test.left, frame))
            found += [v.value for v in evaluate(test.comparators[0], frame) if isinstance(v, Known)]
        elif not is_compared(test, ast.Is):
            return
        if raises(rest):
            break
        if not rest or not isinstance(rest[0], ast.If) or not (len(rest) == 1 or leaves(rest[0].body)):
            return
        test, rest = rest[0].test, [*rest[0].orelse, *rest[1:]]
    if len({subject.path for subject in subjects}) == 1:
        note(subjects, found, frame)


def leaves(body: list[ast.stmt]) -> bool:
    """Return whether a block always leaves the block around it."""
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def note(subjects: list[Item], values: list[Any], frame: Frame) -> None:
    """Note a closed list for the path of the subjects; a list of booleans is a type."""
    for subject in sorted(subjects, key=lambda item: not item.folded):
        if all(isinstance(value, bool) for value in values):
            frame.record.made_into(subject.path, "boolean")
        else:
            frame.record.closed(subject, values)
