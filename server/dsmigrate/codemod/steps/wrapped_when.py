"""The condition under which the original had wrapped a model at a place, written for that place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.carrying import is_plain
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.tree import Node, Statement, descendants

Path: TypeAlias = tuple[tuple[Node, bool], ...]
"""Tests, outermost first, and whether each of them holds on the way to a wrap."""


def wraps_before(plan: Plan, text: str, use: Statement) -> Iterator[cst.Call]:
    """The wraps of a variable above a place of the same function; DataParallel gives the same names as DDP."""
    for call in (*(wrap.call for wrap in plan.wraps), *plan.roles.data_parallel):
        statement = plan.tree.statement(call)
        if statement.function is use.function and statement.order < use.order and target(plan, statement) == text:
            yield call


def target(plan: Plan, statement: Statement) -> str | None:
    """What a statement assigns to, where that is one thing."""
    node = statement.node
    return plan.code(node.targets[0].target) if isinstance(node, cst.Assign) and len(node.targets) == 1 else None


def ways_to_wraps(plan: Plan, text: str, use: Statement) -> list[Path]:
    """The ways to the wraps of a variable that do not all lead to its use too; empty where it is always wrapped there."""
    ways = [_way(plan, call, use) for call in wraps_before(plan, text, use)]
    while True:
        twin = next((way for way in ways if way and _otherwise(plan, way) in [_key(plan, w) for w in ways]), None)
        if twin is None:
            break
        both = (_key(plan, twin), _otherwise(plan, twin))
        ways = [way for way in ways if _key(plan, way) not in both] + [twin[:-1]]
    return [] if () in ways else ways


def _key(plan: Plan, way: Path) -> tuple[tuple[str, bool], ...]:
    return tuple((plan.code(test), holds) for test, holds in way)


def _otherwise(plan: Plan, way: Path) -> tuple[tuple[str, bool], ...]:
    *front, (test, holds) = _key(plan, way)
    return (*front, (test, not holds))


def _way(plan: Plan, call: cst.Call, use: Statement) -> Path:
    statement = plan.tree.statement(call)
    shared = branches_to(use)
    outer = [(node, branch) for node, branch in branches_to(statement) if (node, branch) not in shared]
    way = [(node.test, branch == "body") for node, branch in outer if isinstance(node, cst.If)]
    inner: list[tuple[Node, bool]] = []
    node: Node = call
    while node is not statement.node:
        parent = plan.tree.parent[node]
        if isinstance(parent, cst.IfExp):
            inner.append((parent.test, parent.body is node))
        node = parent
    return (*way, *reversed(inner))


def condition(plan: Plan, ways: list[Path]) -> str:
    """The ways as one expression."""
    texts = []
    for way in ways:
        parts = [_signed(plan, test, holds=holds) for test, holds in way]
        alone = len(parts) == 1 and len(ways) == 1
        texts.append(plan.code(way[0][0]) if alone and way[0][1] else " and ".join(parts))
    return texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)


def _signed(plan: Plan, test: Node, *, holds: bool) -> str:
    text = plan.code(test)
    if holds:
        return f"({text})" if isinstance(test, cst.BooleanOperation | cst.IfExp) else text
    return f"not {text}" if isinstance(test, cst.Name | cst.Attribute | cst.Call) else f"not ({text})"


def holds_still(plan: Plan, ways: list[Path], use: Statement) -> bool:
    """Whether the tests can be asked again at the use: they have no effects, and nothing that they read is set on the way."""
    for way in ways:
        for test, _ in way:
            if not is_plain(test) or any(sub in plan.edits.expressions for sub in descendants(test)):
                return False
            read = {dotted(sub) for sub in descendants(test) if isinstance(sub, cst.Name | cst.Attribute)}
            first = plan.tree.statement(test).order
            for statement in use.function.statements:
                if first < statement.order < use.order and read & set(_set_by(statement.node)):
                    return False
    return True


def _set_by(node: Node) -> Iterator[str | None]:
    if isinstance(node, cst.Assign):
        for each in node.targets:
            yield from _names(each.target)
    elif isinstance(node, cst.AugAssign | cst.AnnAssign | cst.For):
        yield from _names(node.target)
    elif isinstance(node, cst.With):
        for item in node.items:
            if item.asname is not None:
                yield from _names(item.asname.name)


def _names(node: Node) -> Iterator[str | None]:
    if isinstance(node, cst.Tuple | cst.List):
        for element in node.elements:
            yield from _names(element.value)
    else:
        yield dotted(node.value if isinstance(node, cst.Subscript) else node)
