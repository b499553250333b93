"""Whether one place of a function is reached whenever another one is, as its conditions follow from the other's."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.bindings import UNKNOWN, literal_value
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.tree import Node, Statement, descendants


def is_implied(plan: Plan, test: Node, branch: str, first: Statement, then: Statement) -> bool:
    """Whether a branch around ``first`` is always taken where ``then``, further down in the same function, is reached.

    ``if mode == "resume":`` twice, and ``mode != "new"`` where ``mode == "resume"``; what a test reads must stay the same.
    """
    known = {
        (plan.code(part), holds)
        for node, taken in branches_to(then)
        if isinstance(node, cst.If)
        for part, holds in parts_of(node.test, holds=taken == "body")
        if is_stable(part, first, then)
    }
    return all(
        (plan.code(part), holds) in known or (not holds and _is_another_value(plan, part, known))
        for part, holds in parts_of(test, holds=branch == "body")
    )


def parts_of(test: Node, *, holds: bool) -> Iterator[tuple[Node, bool]]:
    """What is true or false where a test holds, or does not."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if holds else cst.Or):
        yield from parts_of(test.left, holds=holds)
        yield from parts_of(test.right, holds=holds)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from parts_of(test.expression, holds=not holds)
    else:
        yield test, holds


def is_stable(test: Node, first: Statement, then: Statement) -> bool:
    """Whether a test gives the same in both places: its names are not set between them, and it only looks at files."""
    read = set()
    for sub in descendants(test):
        if isinstance(sub, cst.Call) and not (dotted(sub.func) or "").startswith("os.path."):
            return False
        read.add(dotted(sub) if isinstance(sub, cst.Name | cst.Attribute) else None)
    start, end = sorted((first.order, then.order))
    return not any(
        dotted(target) in read - {None}
        for statement in first.function.statements
        if start < statement.order < end
        for target in assigned_to(statement.node)
    )


def _is_another_value(plan: Plan, test: Node, known: set[tuple[str, bool]]) -> bool:
    """Whether a comparison with a literal is false, as its left side is known to be another one."""
    compared = _compared(test)
    if compared is None:
        return False
    for text, holds in known:
        other = _compared(cst.parse_expression(text)) if holds else None
        if other is not None and other[1] != compared[1] and plan.code(compared[0]) == _text(other[0]):
            return True
    return False


def _text(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node)


def _compared(test: Node) -> tuple[cst.BaseExpression, object] | None:
    """Both sides of ``name == "literal"``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    value = literal_value(test.comparisons[0].comparator)
    if not isinstance(test.comparisons[0].operator, cst.Equal) or value is UNKNOWN:
        return None
    return test.left, value
