"""MG216: scripts that trained in one process where no launcher had started them."""

from __future__ import annotations

import itertools
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.spawning import is_spawned
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG216",
        "One process needs a launcher too",
        "A script that set up a process group and wrapped its model under a condition also trained when Python alone "
        "started it; that start stops now.",
        "The engine is there in every run. deepspeed.initialize sets up a process group where none is, and looks for MPI "
        "where no launcher has set RANK, LOCAL_RANK and the address: without mpi4py it raises ModuleNotFoundError. A launcher "
        "gives one process the local rank 0: what a script does only at -1 (an evaluation of each epoch, another sampler) is "
        "then passed over, and the report names these tests.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.KEPT,
    ),
)

_Way: TypeAlias = tuple[tuple[Node, str], ...]
_DEPTH = 4
_MOST = 8  # places that a sentence names


def started_alone(plan: Plan, init_names: AbstractSet[str]) -> None:
    """Say that a start without a launcher stops, where the script could do without a process group."""
    if is_spawned(plan) or plan.facts.get("manager"):
        return
    wraps = [wrap.statement for wrap in plan.wraps]
    inits = [plan.tree.statement(call) for call in plan.tree.calls if plan.imports.names(call.func) & init_names]
    if not inits or not all(_is_left_out(plan, wrap, wraps) for wrap in plan.wraps):
        return
    if all(_is_passed_over(plan, init, inits, _DEPTH) or _is_left(plan, init) for init in inits):
        plan.kept("MG216", wraps[0], "Python alone, which trained in one process here, cannot start the script now",
                  "deepspeed.initialize needs what a launcher sets; --nproc_per_node 1 starts one process" + _other_tests(plan))  # fmt: skip


def _other_tests(plan: Plan) -> str:
    """What to say of tests for ``local_rank == -1``, which one process under a launcher does not pass."""
    tests = [
        plan.tree.statement(node)
        for node in plan.tree.statement_of
        if isinstance(node, cst.Comparison)
        and (asks_for_no_rank(node, cst.Equal) or asks_for_no_rank(node, cst.NotEqual))
    ]
    kept = [test for test in dict.fromkeys(tests) if not plan.edits.is_removed(test.node)]
    places = [
        f"{plan.part_of(test).path}:{test.line}" if plan.part_of(test).path else f"line {test.line}" for test in kept
    ]
    if not places:
        return ""
    more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    return (
        f", whose local rank is 0 and not -1: {', '.join(places[:_MOST])}{more} go the way of several processes there"
    )


def refuses_ranks(plan: Plan) -> None:
    """Say of a part of the script that goes on only where no launcher gave it a rank that it cannot run any more."""
    if is_spawned(plan) or plan.facts.get("manager"):
        return
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.Assert):
            refuses = asks_for_no_rank(node.test, cst.Equal)
        else:
            refuses = isinstance(node, cst.If) and asks_for_no_rank(node.test, cst.NotEqual) and _raises(node.body)
        if refuses:
            plan.kept("MG216", statement, "this part of the script refuses a run under a launcher, and there is no other now: it stays with the original",
                      "a launcher gives every process a rank")  # fmt: skip


def asks_for_no_rank(test: Node, operator: type[cst.BaseCompOp]) -> bool:
    """``args.local_rank == -1``, or with another operator."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    compared = test.comparisons[0]
    name = (dotted(test.left) or "").lower()
    return name.endswith("rank") and isinstance(compared.operator, operator) and number(compared.comparator) == -1


def _raises(body: cst.BaseSuite) -> bool:
    first = body.body[0] if body.body else None
    return isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Raise)


def _is_left_out(plan: Plan, wrap: Wrap, others: list[Statement]) -> bool:
    """Whether the model may stay unwrapped."""
    between = itertools.takewhile(lambda node: node is not wrap.statement.node, plan.tree.ancestors(wrap.call))
    if any(isinstance(node, cst.IfExp) for node in between) or _is_passed_over(plan, wrap.statement, others, _DEPTH):
        return True
    return isinstance(wrap.model, cst.Name) and any(  # def wrapped(model): if not distributed: return model
        isinstance(other.node, cst.Return)
        and dotted(other.node.value) == wrap.model.value
        and other.order < wrap.statement.order
        and _is_optional(other, [])
        for other in wrap.function.statements
    )


def _is_passed_over(plan: Plan, statement: Statement, others: list[Statement], depth: int) -> bool:
    """Whether an ``if`` may pass a statement over, and the others of its function with it, or every call of its function."""
    together = [statement, *(other for other in others if other.function is statement.function)]
    if _is_avoidable([_tests_around(one) for one in together]):
        return True
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(statement.function, ())]
    return bool(callers) and depth > 0 and all(_is_passed_over(plan, c, callers, depth - 1) for c in callers)


def _tests_around(statement: Statement) -> _Way:
    """The branches of ``if`` that lead to a statement, outermost first."""
    return tuple(
        (node, branch) for node, branch in branches_to(statement) if isinstance(node, cst.If) and not _is_start(node)
    )


def _is_avoidable(ways: list[_Way]) -> bool:
    """Whether a run may come to none of some statements, given by the branches that lead to them."""
    if () in ways:
        return False
    for node in {way[0][0] for way in ways}:
        branches = [[way[1:] for way in ways if way[0] == (node, branch)] for branch in ("body", "orelse")]
        if all(inner and not _is_avoidable(inner) for inner in branches):
            return False
    return True


def _is_optional(statement: Statement, others: list[Statement]) -> bool:
    """Whether an ``if`` may pass a statement over, and no other one stands in its branches instead."""
    shared = {outer for other in others if other is not statement for outer in other.enclosing()}
    return any(
        isinstance(outer.node, cst.If) and not _is_start(outer.node) and outer not in shared
        for outer in statement.enclosing()
    )


def _is_start(node: cst.If) -> bool:
    test = node.test
    return isinstance(test, cst.Comparison) and isinstance(test.left, cst.Name) and test.left.value == "__name__"


def _is_left(plan: Plan, statement: Statement) -> bool:
    """Whether its function may have returned before it, for another reason than a group that is there already."""
    return any(
        isinstance(other.node, cst.Return)
        and other.order < statement.order
        and _is_optional(other, [])
        and not any(
            isinstance(o.node, cst.If) and "is_initialized" in plan.code(o.node.test) for o in other.enclosing()
        )
        for other in statement.function.statements
    )
