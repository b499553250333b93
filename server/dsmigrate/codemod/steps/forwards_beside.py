"""Training forwards that ran outside of the autocast regions, and the branches that tell them from those inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.entered_regions import first_inside
from dsmigrate.codemod.steps.reaching import calls_engine, serves_training, under_no_grad
from dsmigrate.codemod.steps.regions import in_region
from dsmigrate.codemod.tree import Node, Statement

_DEPTH = 4
_MOST_CALLERS = 8

Branch = tuple[Statement, str]
"""A compound statement, and the name of that body of it in which another statement stands."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A forward outside of every region.

    ``is_apart`` says whether branches keep it from running beside a region; ``condition`` is the source text, at the
    place of the engine, under which a region is entered in its stead, None if that cannot be written there.
    """

    statement: Statement
    is_apart: bool
    condition: str | None = None


def forwards_beside(plan: Plan, regions: Sequence[Statement]) -> list[Beside]:
    """Every forward of a training step that runs in none of ``regions``, the ``with`` statements of training."""
    inside = [path for region in regions for path in paths_to(plan, region)]
    found: dict[Statement, Beside] = {}
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if statement in found or not is_training_forward(plan, call):
            continue
        outside = [path for path in paths_to(plan, statement) if not any(is_sheltered(plan, s, regions) for s in path)]
        told = [_beside(plan, statement, inside, path) for path in outside]
        for one in sorted(told, key=lambda one: (one.is_apart, one.condition is not None)):
            found.setdefault(statement, one)
    return list(found.values())


def runs_apart(plan: Plan, statement: Statement, regions: Sequence[Statement]) -> bool:
    """Whether branches keep a statement from running in a pass that enters one of ``regions``."""
    inside = [path for region in regions for path in paths_to(plan, region)]
    return all(
        not any(is_sheltered(plan, s, regions) for s in path) and all(branches_apart(other, path) for other in inside)
        for path in paths_to(plan, statement)
    )


def is_reached_without(statement: Statement, flag: str) -> bool:
    """Whether a statement runs only where a variable or option, in its source text, is false."""
    return (flag, False) in (_plain_test(outer.node.test, taken) for outer, taken in _ifs_to(statement))  # type: ignore[attr-defined]


def is_training_forward(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the engine for a training step."""
    statement = plan.tree.statement(call)
    if not calls_engine(plan, call) or plan.is_before_engine(call) or statement.function.name == "forward":
        return False
    return serves_training(plan, statement.function) and not under_no_grad(plan, statement)


def is_sheltered(plan: Plan, statement: Statement, regions: Sequence[Statement]) -> bool:
    """Whether a statement stands in a region, or where no gradients are recorded."""
    return (
        in_region(plan, statement)
        or under_no_grad(plan, statement)
        or any(outer in regions for outer in (statement, *statement.enclosing()))
    )


def paths_to(plan: Plan, statement: Statement, depth: int = _DEPTH) -> Iterator[tuple[Statement, ...]]:
    """A statement with the calls that lead to it, innermost first; one path for each way."""
    statement = first_inside(plan, statement)
    callers = plan.flow.callers.get(statement.function, ())[:_MOST_CALLERS] if depth else ()
    if not callers:
        yield (statement,)
    for call in callers:
        for path in paths_to(plan, plan.tree.statement(call), depth - 1):
            yield (statement, *path)


def _beside(
    plan: Plan, statement: Statement, inside: Sequence[tuple[Statement, ...]], path: tuple[Statement, ...]
) -> Beside:
    """Tell one way to a forward from all ways to a region."""
    texts: list[str] = []
    for other in inside:
        branches = branches_apart(other, path)
        if not branches:
            return Beside(statement, is_apart=False)
        conditions = [_carried(plan, *branch) for branch in reversed(branches)]
        if any(text is None for text in conditions):
            return Beside(statement, is_apart=True)
        texts.append(
            " and ".join(f"({t})" if t and len(conditions) > 1 and _is_compound(t) else t or "" for t in conditions)
        )
    texts = list(dict.fromkeys(texts))
    return Beside(
        statement,
        is_apart=True,
        condition=" or ".join(f"({t})" if len(texts) > 1 and " and " in t else t for t in texts),
    )


def _is_compound(text: str) -> bool:
    return " and " in text or " or " in text


def _carried(plan: Plan, outer: Statement, branch: str) -> str | None:
    assert isinstance(outer.node, cst.If)
    text = carry(plan, outer.node.test, outer.function)
    return text if text is None or branch == "body" else f"not ({text})"


def branches_apart(inside: tuple[Statement, ...], outside: tuple[Statement, ...]) -> list[Branch]:
    """The branches to a region that lead past another statement, in the function in which their ways part."""
    for own in inside:
        for other in outside:
            if own.function is other.function:
                return [(outer, branch) for outer, branch in _ifs_to(own) if _leads_past(outer, branch, other)]
    return []


def _ifs_to(statement: Statement) -> Iterator[Branch]:
    branch = statement.branch
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If):
            yield outer, branch
        branch = outer.branch


def _leads_past(outer: Statement, branch: str, other: Statement) -> bool:
    """Whether ``other`` does not run in a pass that takes this branch."""
    theirs = branch_within(other, outer)
    if theirs is not None:
        return theirs != branch
    if other.order > outer.last_order and _leaves(outer.node, branch):
        return True
    assert isinstance(outer.node, cst.If)
    name, is_true = _plain_test(outer.node.test, branch)
    return name is not None and any(
        _plain_test(theirs_outer.node.test, taken) == (name, not is_true)
        for theirs_outer, taken in _ifs_to(other)
        if isinstance(theirs_outer.node, cst.If)
    )


def branch_within(statement: Statement, outer: Statement) -> str | None:
    """By which branch of a compound statement another one is reached; None if it stands outside."""
    branch = statement.branch
    for enclosing in statement.enclosing():
        if enclosing is outer:
            return branch
        branch = enclosing.branch
    return None


def _leaves(node: Node, branch: str) -> bool:
    """Whether a branch of an ``if`` ends by leaving the block."""
    assert isinstance(node, cst.If)
    taken = node.body if branch == "body" else getattr(node.orelse, "body", None)
    lines = taken.body if isinstance(taken, cst.IndentedBlock) else ()
    last = lines[-1] if lines else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(
        last.body[-1], cst.Return | cst.Raise | cst.Continue | cst.Break
    )


def _plain_test(test: Node, branch: str) -> tuple[str | None, bool]:
    """The variable or option that a branch asks for, and whether it has to be true there."""
    is_true = branch == "body"
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, is_true = test.expression, not is_true
    return dotted(test), is_true
