"""MG428: steps that each rank takes or leaves out by its own loss."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.forwards_beside import branch_within
from dsmigrate.codemod.steps.own_losses import is_own
from dsmigrate.codemod.steps.sites import find_backward, find_steps
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG428",
        "Each rank decides by its own loss whether it steps",
        "A step behind `if not torch.isnan(loss)`, or left out where the rank's loss is too large, needs ZeRO 0.",
        "At ZeRO 1-3 a step is collective: the ranks exchange the parts that each has stepped. A rank that leaves one out lets "
        "the others wait for ever, or takes part in something else. At ZeRO 0 each rank steps by itself, as under DDP, "
        "where the ranks' weights part then. To decide together, reduce the loss before the test.",
        "deepspeed/runtime/zero/stage_1_and_2.py, step: all_gather_dp_groups; run on two processes",
        Kind.KEPT,
    ),
)


def rank_steps(plan: Plan) -> None:
    """Let the config have ZeRO 0 where backward runs on all ranks and the step is decided about by each."""
    backwards = [plan.tree.statement(call) for call in find_backward(plan)]
    for call in find_steps(plan):
        step = plan.tree.statement(call)
        test = _own_test(plan, step, [one for one in backwards if one.function is step.function])
        if test is not None:
            plan.needs_stage_zero("MG428", test, "each rank decides by its own loss here whether it steps",
                                  "at ZeRO 1-3 a step is collective, and a rank that leaves it out lets the others wait")  # fmt: skip


def _own_test(plan: Plan, step: Statement, backwards: list[Statement]) -> Statement | None:
    """The ``if`` on the rank's loss that stands behind backward and decides about a step."""
    before = [one for one in backwards if one.order < step.order]
    if not before:
        return None
    last = before[-1]
    for outer in step.enclosing():
        if isinstance(outer.node, cst.If) and branch_within(last, outer) is None and _asks(plan, outer):
            return outer
    blocks = {outer.block for outer in (step, *step.enclosing())}
    for other in step.function.statements:
        if last.order < other.order < step.order and other.block in blocks and isinstance(other.node, cst.If):
            if branch_within(step, other) is None and _leaves(plan, other) and _asks(plan, other):
                return other
    return None


def _asks(plan: Plan, statement: Statement) -> bool:
    return isinstance(statement.node, cst.If) and is_own(plan, statement.node.test, statement.function)


def _leaves(plan: Plan, statement: Statement) -> bool:
    """Whether an ``if`` goes on with the next batch, or returns: not where it ends the run."""
    inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
    return any(one.up is statement and isinstance(one.node, cst.Continue | cst.Return) for one in inner)
