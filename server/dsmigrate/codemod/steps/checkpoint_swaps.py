"""MG616: weights that are put in for a save, and taken out before all ranks have written the checkpoint."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Save
from dsmigrate.codemod.steps.ranks import reached_by_all
from dsmigrate.codemod.steps.weight_writes import writers
from dsmigrate.codemod.tree import Statement, descendants

IDEAS = (
    Idea(
        "MG616",
        "Weights are exchanged around a save",
        "Averaged weights are put into the model for a checkpoint, and taken out right behind it, under the rank guard.",
        "All ranks write the checkpoint behind the guard, when the model has its own weights again: the file would hold "
        "those, without a word. Exchange the weights on all ranks, around the guard, or save the averaged ones as an entry "
        "of their own.",
        "deepspeed/runtime/engine.py, save_checkpoint, which takes the weights when it is called",
        Kind.TODO,
    ),
)
_GIVES_BACK = re.compile(r"^(?:restore|un_?swap|swap|revert|switch|copy_to|load_backup|recover|undo)", re.IGNORECASE)
_AVERAGE = re.compile(r"(?<![a-z])ema|averag|shadow|(?<![a-z])swa(?![a-z])|polyak", re.IGNORECASE)


def swaps(plan: Plan, save: Save) -> None:
    """Mark a save whose weights are taken out of the model before the checkpoint is written."""
    for anchor in reached_by_all(plan, save.statement, 4) or [save.statement]:
        culprit = _block(plan, save.statement, anchor) or _call(plan, save.statement, anchor)
        if culprit is not None:
            plan.todo("MG616", save.statement, f"{culprit} changes the weights before all ranks write this checkpoint: it would hold the changed ones",
                      "torch.save had written it here; the engine takes its weights behind the guard")  # fmt: skip
            return


def _block(plan: Plan, statement: Statement, anchor: Statement) -> str | None:
    """The ``with ema.average_parameters():`` around the save and inside of what all ranks reach."""
    for outer in statement.enclosing():
        if outer is anchor:
            return None
        if isinstance(outer.node, cst.With):
            for item in outer.node.items:
                if isinstance(item.item, cst.Call) and _AVERAGE.search(plan.code(item.item.func)):
                    return plan.code(item.item.func)
    return None


def _call(plan: Plan, statement: Statement, anchor: Statement) -> str | None:
    """The call behind the save, and before all ranks write, that writes weights of the model."""
    last = anchor.last_order if anchor.function is statement.function else statement.order + len(plan.tree.statements)
    for call in plan.tree.calls:
        where = plan.tree.statement(call)
        if where.function is not statement.function or not statement.order < where.order <= last:
            continue
        if any(function in writers(plan) for function in plan.flow.callees(call)) or _gives_back(plan, call):
            return plan.code(call.func)
    return None


def _gives_back(plan: Plan, call: cst.Call) -> bool:
    """``ema.restore(…)`` of an object from elsewhere that averages weights, or that gets those of the model."""
    func = call.func
    if (
        not isinstance(func, cst.Attribute)
        or not _GIVES_BACK.search(func.attr.value)
        or plan.flow.callee(call) is not None
    ):
        return False
    ours = any(
        plan.is_ours(sub)
        for arg in call.args
        for sub in descendants(arg.value)
        if isinstance(sub, cst.Name | cst.Attribute)
    )
    return ours or bool(_AVERAGE.search(plan.code(func.value)))
