"""MG635: saves that every rank did by a metric of its own, without a rank guard."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.own_losses import is_own
from dsmigrate.codemod.steps.ranks import rank_guard, ways_of_others
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG635",
        "Each rank saved by a metric of its own",
        "`if acc > best: torch.save(…)` on all ranks, where acc is of this rank's part of the data.",
        "Under DDP every rank whose own metric was better wrote the file, and the last one won. The engine writes one checkpoint "
        "for all, where rank 0's own metric is better. Reduce the metric over the ranks (all_reduce) before the test, and the best "
        "checkpoint is that of the whole data.",
        "deepspeed/runtime/engine.py, save_checkpoint; run on two processes",
        Kind.KEPT,
    ),
)

_DEPTH = 3


def own_saves(plan: Plan, found: Found) -> None:
    """Say where only rank 0's own metric decides now."""
    for save in found.saves:
        if _by_own_metric(plan, save.statement, _DEPTH):
            plan.kept("MG635", save.statement, "every rank whose own metric is better saved here; that of rank 0 alone decides now: reduce the metric "
                      "over the ranks before the test", "the engine writes one checkpoint for all, where rank 0 asks for it")  # fmt: skip


def _by_own_metric(plan: Plan, statement: Statement, depth: int) -> bool:
    """Whether a test of the rank's own metric, and none of the rank, lets to a statement."""
    ways = ways_of_others(plan, statement, measured=False)
    if rank_guard(plan, statement) is not None or ways:
        return False
    guards = [outer for outer in statement.enclosing() if isinstance(outer.node, cst.If)]
    guards += [guard for _, guard in ways_of_others(plan, statement) if guard is not None]
    if any(is_own(plan, guard.node.test, guard.function) for guard in guards):  # type: ignore[attr-defined]
        return not _is_called_by_some(plan, statement, depth)
    callers = plan.flow.callers.get(statement.function, ()) if depth else ()
    return any(_by_own_metric(plan, plan.tree.statement(call), depth - 1) for call in callers)


def _is_called_by_some(plan: Plan, statement: Statement, depth: int) -> bool:
    """Whether all calls of the function around a statement stand under a guard of the rank."""
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(statement.function, ())] if depth else []
    return bool(callers) and all(
        rank_guard(plan, caller) is not None
        or ways_of_others(plan, caller, measured=False)
        or _is_called_by_some(plan, caller, depth - 1)
        for caller in callers
    )
