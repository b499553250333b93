"""Where a block is left before its end: ``return``, ``break``, ``continue``, ``raise``, ``sys.exit()``."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import calls_in
from dsmigrate.codemod.tree import Node, Statement

_MEETINGS = frozenset({"torch.distributed.barrier", "torch.distributed.destroy_process_group"})
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


def run_on_all_ways(
    plan: Plan, statement: Statement, anchor: Statement, line: str, points: dict[Node, Node], since: Statement | None
) -> bool:
    """Put a line before everything that leaves ``anchor``, around a statement, so that whoever enters runs it once.

    Where ranks go on with the loop from an ``if`` above it, ``since``, the line stands before that too, and what leaves in between.
    The line behind ``anchor`` is the caller's; ``points`` holds where lines stand already, by way out. False where a way out has no place for it.
    """
    for way in (*_ways_above(plan, anchor, since), *_ways_out(plan, statement, anchor)):
        place = _first_meeting(plan, statement, way) or way
        if points.get(way.node) is place.node:
            continue
        if way.node in points or _is_caught(way, anchor) or not _put_before(plan, place, line):
            return False
        points[way.node] = place.node
    return True


def _first_meeting(plan: Plan, statement: Statement, way: Statement) -> Statement | None:
    """Where all ranks wait for each other behind a statement, or part, before a way out of the same block.

    A rank that came without the others writes its checkpoint first, as it did, before it waits there.
    """
    return next(
        (
            other
            for other in plan.tree.statements[statement.last_order + 1 : way.order]
            if other.block is way.block and isinstance(other.node, cst.Expr) and _meets(plan, other.node.value)
        ),
        None,
    )


def _meets(plan: Plan, node: Node) -> bool:
    if not isinstance(node, cst.Call):
        return False
    callee = plan.flow.callee(node)
    inner = calls_in(plan).get(callee, ()) if callee is not None else ()
    return any(plan.imports.names(call.func) & _MEETINGS for call in (node, *inner))


def _ways_out(plan: Plan, statement: Statement, anchor: Statement) -> list[Statement]:
    inner = plan.tree.statements[anchor.order + 1 : anchor.last_order + 1]
    return [
        other for other in inner
        if other.function is anchor.function
        and (_leaves(other, anchor) or (_ends(plan, other) and _may_follow(other, statement)))
    ]  # fmt: skip


def _ways_above(plan: Plan, anchor: Statement, since: Statement | None) -> list[Statement]:
    """What leaves the round of the loop around ``since`` and ``anchor`` in front of the latter."""
    loop = next((o for o in since.enclosing() if isinstance(o.node, cst.For | cst.While)), None) if since else None
    if since is None or loop is None:
        return []
    return [
        other
        for other in plan.tree.statements[since.order : anchor.order]
        if other.function is anchor.function and _leaves(other, loop, of_loop=True)
    ]


def _leaves(statement: Statement, anchor: Statement, *, of_loop: bool = False) -> bool:
    """Whether a statement is a ``return``, or goes on with or behind a loop around ``anchor``, or that loop itself."""
    if isinstance(statement.node, cst.Return):
        return True
    return isinstance(statement.node, cst.Continue | cst.Break) and not any(
        isinstance(outer.node, cst.For | cst.While) and branch == "body" and not (of_loop and outer is anchor)
        for outer, branch in _around(statement, anchor)
    )


def _ends(plan: Plan, statement: Statement) -> bool:
    """Whether a statement ends the process, or the function by an exception."""
    node = statement.node
    call = node.value if isinstance(node, cst.Expr) else None
    return isinstance(node, cst.Raise) or (isinstance(call, cst.Call) and bool(plan.imports.names(call.func) & _EXITS))


def _is_caught(statement: Statement, anchor: Statement) -> bool:
    """Whether an exception stays inside of ``anchor``."""
    return not isinstance(statement.node, cst.Return | cst.Continue | cst.Break) and any(
        isinstance(outer.node, cst.Try | cst.TryStar) and branch == "body"
        for outer, branch in _around(statement, anchor)
    )


def _around(statement: Statement, anchor: Statement) -> list[tuple[Statement, str]]:
    """The statements around one, up to ``anchor``, each with its branch that leads there."""
    found, current = [], statement
    while current is not anchor and current.up is not None:
        found.append((current.up, current.branch))
        current = current.up
    return found


def _may_follow(other: Statement, statement: Statement) -> bool:
    """Whether a run may come from a statement to another one below it: not from one branch of an ``if`` to the next."""
    branches = dict(_around(statement, other))
    return other.order > statement.order and not any(
        isinstance(outer.node, cst.If) and branches.get(outer, branch) != branch
        for outer, branch in _around(other, statement)
    )


def _put_before(plan: Plan, statement: Statement, line: str) -> bool:
    """Put a line before a statement, also where it shares its own line with others."""
    node, parent = statement.node, plan.tree.parent.get(statement.node)
    if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) == 1:
        plan.edits.insert_before(parent, line)
        return True
    if node in plan.edits.statements:
        return False
    plan.edits.substitute(node, line, plan.code(node))
    plan.converted(
        "MG621", statement, "all ranks save before this, too", "what was requested is written on every way out"
    )
    return True
