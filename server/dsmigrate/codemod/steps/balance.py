"""Proves, or fails to prove, that a loop runs exactly one backward per step."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import Sites
from dsmigrate.codemod.tree import Function, Node, Statement


def branches_to(statement: Statement) -> tuple[tuple[Node, str], ...]:
    """The branches that lead to a statement, outermost first; ``with`` blocks do not matter."""
    found: list[tuple[Node, str]] = []
    branch = statement.branch
    for outer in statement.enclosing():
        if not isinstance(outer.node, cst.With):
            found.append((outer.node, branch))
        branch = outer.branch
    return tuple(reversed(found))


def excludes(one: Statement, other: Statement) -> bool:
    """Whether two statements stand in different branches of one ``if``, so that one pass runs only one of them."""
    taken: dict[Node, str] = {node: branch for node, branch in branches_to(one) if isinstance(node, cst.If)}
    return any(taken.get(node, branch) != branch for node, branch in branches_to(other))


def is_one_to_one(plan: Plan, sites: Sites) -> bool:
    """Whether every step is preceded by exactly one backward, whatever path the loop takes."""
    functions = {plan.function_of(call) for call in (*sites.backward, *sites.steps)}
    for function in functions:
        backs = [plan.tree.statement(c) for c in sites.backward if plan.function_of(c) is function]
        steps = [plan.tree.statement(c) for c in sites.steps if plan.function_of(c) is function]
        if not backs or not steps:
            return False
        if not _balanced(plan, function, backs, steps):
            return False
    return True


def _balanced(plan: Plan, function: Function, backs: list[Statement], steps: list[Statement]) -> bool:
    block = innermost_loop(backs[0])
    for statement in (*backs, *steps):
        if innermost_loop(statement) is not block:
            return False
    order = sorted((*[(s.order, "b") for s in backs], *[(s.order, "s") for s in steps]))
    first, last = order[0][0], order[-1][0]
    # Leaving early between backward and step would leave a gradient behind.
    for statement in function.statements:
        if first < statement.order < last and isinstance(statement.node, cst.Continue | cst.Break | cst.Return):
            return False
    counts = _count(plan, block if block is not None else function.node, function, set(backs), set(steps))
    return counts == {("b", "s")}


def innermost_loop(statement: Statement) -> Node | None:
    """The loop that a statement stands in, or None."""
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For | cst.While):
            return outer.node
    return None


def _count(
    plan: Plan, owner: Node, function: Function, backs: set[Statement], steps: set[Statement]
) -> set[tuple[str, ...]]:
    """The possible sequences of backwards and steps in one run of a block (paths without either are left out)."""
    table: dict[Node, list[Statement]] = {}
    for statement in function.statements:
        table.setdefault(statement.block, []).append(statement)

    def block(node: Node | None) -> set[tuple[str, ...]]:
        result: set[tuple[str, ...]] = {()}
        for statement in table.get(node, ()) if node is not None else ():
            parts = one(statement)
            result = {left + right for left in result for right in parts}
            if len(result) > 64 or any(len(item) > 6 for item in result):
                return {("many",)}
        return result

    def one(statement: Statement) -> set[tuple[str, ...]]:
        node = statement.node
        if statement in backs:
            return {("b",)}
        if statement in steps:
            return {("s",)}
        if isinstance(node, cst.If):
            orelse = node.orelse
            other = (
                one(plan.tree.statement_of[orelse])
                if isinstance(orelse, cst.If)
                else block(orelse.body)
                if orelse is not None
                else {()}
            )
            return block(node.body) | other
        if isinstance(node, cst.With):
            return block(node.body)
        if isinstance(node, cst.Try | cst.TryStar):
            return block(node.body)
        if isinstance(node, cst.For | cst.While):
            inner = block(node.body)
            return {()} if inner == {()} else {("many",)}
        return {()}

    body = owner.body if isinstance(owner, cst.For | cst.While | cst.FunctionDef) else owner
    return {path for path in block(body) if path} if body in table else set()
