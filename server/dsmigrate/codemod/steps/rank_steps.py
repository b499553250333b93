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
        "A step behind `if not torch.isnan(loss)`, or left out where the rank's loss is too large, is marked.",
        "The engine's step is one of all ranks together: at ZeRO 1-3 the ranks exchange the parts that each has stepped, and at "
        "ZeRO 0 a run in which one rank left steps out trained otherwise than under DDP and stopped as well. Under DDP the "
        "ranks' weights part there. Reduce the loss before the test, so that all ranks decide alike.",
        "deepspeed/runtime/zero/stage_1_and_2.py, step: all_gather_dp_groups; run on two processes",
        Kind.TODO,
    ),
)


def rank_steps(plan: Plan) -> None:
    """Mark where backward runs on all ranks and the step is decided about by each."""
    backwards = [plan.tree.statement(call) for call in find_backward(plan)]
    for call in find_steps(plan):
        step = plan.tree.statement(call)
        test = _own_test(plan, step, [one for one in backwards if one.function is step.function])
        if test is not None:
            plan.todo("MG428", test, "each rank decides by its own loss here whether it steps, and the engine steps on all ranks "
                      "together: reduce the loss before the test", "a rank that leaves a step out lets the others wait, or train otherwise")  # fmt: skip


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
