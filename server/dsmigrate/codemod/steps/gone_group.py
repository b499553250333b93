"""MG621 again: what all ranks do together behind ``dist.destroy_process_group()`` finds no group."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.resumed_forms import are_exclusive
from dsmigrate.codemod.tree import Function, Statement

_DESTROYS = "torch.distributed.destroy_process_group"
_SETS_UP = frozenset({"torch.distributed.init_process_group", "deepspeed.init_distributed"})
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit"})
_DEPTH = 4


def group_is_gone(plan: Plan, statement: Statement, depth: int = _DEPTH) -> bool:
    """Whether a statement, or a call of its function, comes behind one that destroys the process group."""
    enders = _reaching(plan, "ends_of_the_group", frozenset({_DESTROYS}))
    starts = _reaching(plan, "starts_of_the_group", _SETS_UP)
    for end in enders:
        if end.function is statement.function and _leads_to(plan, end, statement):
            if not any(s.function is end.function and end.order < s.order < statement.order for s in starts):
                return True
    callers = plan.flow.callers.get(statement.function, ()) if depth else ()
    return any(group_is_gone(plan, plan.tree.statement(call), depth - 1) for call in callers)


def _reaching(plan: Plan, fact: str, names: frozenset[str]) -> list[Statement]:
    """The statements that call one of some functions of torch, by themselves or through functions of the tree."""
    found: dict[Statement, None] | None = plan.facts.get(fact)
    if found is None:
        found = plan.facts[fact] = {}
        queue = [call for call in plan.tree.calls if not call.args or names is _SETS_UP]
        queue = [call for call in queue if plan.imports.names(call.func) & names]
        seen: set[Function] = set()
        while queue:
            statement = plan.tree.statement(queue.pop())
            found[statement] = None
            if statement.function not in seen:
                seen.add(statement.function)
                queue += plan.flow.callers.get(statement.function, ())
    return list(found)


def _leads_to(plan: Plan, end: Statement, statement: Statement) -> bool:
    """Whether the way goes on from a statement to a later one of its function."""
    if not end.last_order < statement.order or are_exclusive(end, statement):
        return False
    around = (statement, *statement.enclosing())
    if any(one.branch == "handler" and one.up is not None and end.order > one.up.order for one in around):
        return False
    blocks = {one.block for one in around}
    one: Statement | None = end
    while one is not None and one.block not in blocks:
        if any(s.block is one.block and s.order > one.order and _leaves(plan, s) for s in one.function.statements):
            return False
        one = one.up
    return one is not None


def _leaves(plan: Plan, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        return bool(plan.imports.names(node.value.func) & _EXITS)
    return isinstance(node, cst.Return | cst.Raise | cst.Continue | cst.Break)
