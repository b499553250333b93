"""MG622 again: a resume within the script's own ``try``, whose handler goes on after what the engine raises.

``engine.load_checkpoint`` loads the weights before it fails at the optimizer, and at ZeRO 1-3 the next step undoes them.
"""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Node, Statement, descendants

_CATCHES = frozenset({"Exception", "BaseException", "RuntimeError", "ValueError", "KeyError", "AssertionError"})
_ENDS = frozenset({"exit", "quit", "sys.exit", "os._exit"})
_DEPTH = 3


def resumed_in_try(plan: Plan, found: Found) -> None:
    """Mark reads and loads of what is resumed whose errors a handler of the script passes over."""
    seen: set[Node] = set()
    for call in (*found.loads, *found.optimizer_loads):
        statement = plan.tree.statement(call)
        around = passing_over(plan, statement, _DEPTH, _CATCHES)
        if around is None or around in seen:
            continue
        seen.add(around)
        plan.todo("MG622", statement, "the except around this goes on after any error here, with weights that are loaded and an optimizer that "
                  "is not (ZeRO 1-3 undo such weights), or from scratch where a file of the DDP script is given: let it raise",
                  "resume_engine loads weights and optimizer in one; either failed alone before")  # fmt: skip


def passing_over(plan: Plan, statement: Statement, depth: int, kinds: frozenset[str]) -> Node | None:
    """The ``try`` around a statement, or around the calls of its function, whose handler of errors goes on with the training."""
    for node, branch in branches_to(statement):
        if isinstance(node, cst.Try) and branch == "body" and not _trains(plan, node):
            if any(_catches(handler, kinds) for handler in node.handlers):
                return node
    function = statement.function
    trains = any(plan.function_of(call) is function for call in find_backward(plan))
    if depth == 0 or trains or (plan.site is not None and plan.site.function is function):
        return None
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(function, ())]
    outer = (passing_over(plan, caller, depth - 1, kinds) for caller in callers)
    return next((found for found in outer if found is not None), None)


def _trains(plan: Plan, node: cst.Try) -> bool:
    """Whether the training itself is within the ``try``: an error ends it, whatever the handler does."""
    within = set(descendants(node.body))
    return any(call in within for call in find_backward(plan))


def _catches(handler: cst.ExceptHandler, kinds: frozenset[str]) -> bool:
    """Whether a handler takes errors of some kinds, and neither raises nor ends the script."""
    caught = [handler.type] if handler.type is not None else []
    if caught and isinstance(caught[0], cst.Tuple):
        caught = [element.value for element in caught[0].elements]
    if caught and not any((dotted(kind) or "") in kinds for kind in caught):
        return False
    return not any(
        isinstance(sub, cst.Raise) or (isinstance(sub, cst.Call) and dotted(sub.func) in _ENDS)
        for sub in descendants(handler.body)
    )
