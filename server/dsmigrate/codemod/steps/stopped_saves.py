"""MG633: checkpoints that a rank writes because it stops, while the others may go on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.ranks import leads_training
from dsmigrate.codemod.steps.reaching import leads_to_backward
from dsmigrate.codemod.tree import Function, Statement

IDEAS = (
    Idea(
        "MG633",
        "A checkpoint of a rank that stops alone",
        "A checkpoint is saved in an except or finally around the training, in a signal handler or by atexit.",
        "torch.save needs no other rank. engine.save_checkpoint does: the rank that failed, or was signalled first, waits "
        "there for ranks that train on and never come, and nothing is written. In a handler set a flag only; behind each step let "
        "all ranks agree on it (all_reduce) and save together. For a rank that fails, save often enough before.",
        "deepspeed/runtime/engine.py, save_checkpoint; engine-semantics 14",
        Kind.TODO,
    ),
)

_DEPTH = 4
_REGISTERS = frozenset({"signal.signal", "atexit.register"})
_SAME_ON_ALL = frozenset({"StopIteration", "ImportError", "ModuleNotFoundError", "AttributeError"})


def stopped(plan: Plan, found: Found) -> None:
    """Mark the saves, or the calls that lead to one, where a rank comes because it stops."""
    ways = [way for save in found.saves for way in _ways(plan, save.statement, _DEPTH)]
    for statement, where in dict.fromkeys(ways):
        plan.todo("MG633", statement, f"{where} may come here alone, and waits for ever for the others to write this checkpoint too: "
                  "set a flag here at most, let all ranks agree on it behind a step (all_reduce), and save there",
                  "torch.save needed no other rank; a DeepSpeed checkpoint is written by all")  # fmt: skip


def _ways(plan: Plan, statement: Statement, depth: int) -> Iterator[tuple[Statement, str]]:
    """The statements on the way to one that stand where a rank stops, with the words for such a rank."""
    function = statement.function
    if _follows_failure(plan, statement):
        yield statement, "a rank that fails or is interrupted"
    elif _is_registered(plan, statement):
        yield statement, "a rank that gets the signal at a step of its own, or ends,"
    elif depth and not leads_training(plan, function):
        for call in plan.flow.callers.get(function, ()):
            if plan.function_of(call) is not function:
                yield from _ways(plan, plan.tree.statement(call), depth - 1)


def _follows_failure(plan: Plan, statement: Statement) -> bool:
    """Whether a statement stands in the ``except`` or ``finally`` of a ``try`` around steps of the training."""
    current = statement
    while current.up is not None:
        outer = current.up
        if isinstance(outer.node, cst.Try | cst.TryStar) and (
            current.branch == "finally" or (current.branch == "handler" and not _is_same_on_all(plan, current))
        ):
            return leads_to_backward(plan, outer)
        current = outer
    return False


def _is_same_on_all(plan: Plan, statement: Statement) -> bool:
    """Whether a handler is for what all ranks meet in the same place, as the end of a loader is."""
    handler = next(
        node
        for node in plan.tree.ancestors(statement.node)
        if isinstance(node, cst.ExceptHandler | cst.ExceptStarHandler)
    )
    kinds = (
        [element.value for element in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    )
    return all(kind is not None and dotted(kind) in _SAME_ON_ALL for kind in kinds)


def _is_registered(plan: Plan, statement: Statement) -> bool:
    """Whether a statement stands in a function for a signal or for the end of the process, or registers one itself."""
    for call in plan.tree.calls:
        if plan.imports.names(call.func) & _REGISTERS and call.args:
            where = plan.tree.statement(call)
            if where is statement or _is_meant(statement.function, call, where):
                return True
    return False


def _is_meant(function: Function, call: cst.Call, where: Statement) -> bool:
    if function.is_module or function.top is not where.function.top:
        return False
    return any((dotted(arg.value) or "").rpartition(".")[2] == function.name for arg in call.args)
