"""Which statements of other functions run before the engine exists."""

from __future__ import annotations

import sys

import libcst as cst

from dsmigrate.codemod.evaluation_order import runs_behind
from dsmigrate.codemod.plan import EngineSite, Plan
from dsmigrate.codemod.tree import Function, descendants

_NEVER = sys.maxsize
"""The order up to which a function that never gets the engine sees the plain model: all of it."""


def upstream(plan: Plan, site: EngineSite) -> dict[Function, int]:
    """Functions on the way to the engine, each with the order up to which its statements run before the engine exists.

    These are the functions that wrap the model for the one that makes the engine, and its callers. A caller sees the
    engine from its call on, unless it wrapped the model itself and does not get the engine back. The call that makes
    the engine is kept: what runs behind it in its own statement, as in ``Trainer(net).fit()``, has the engine.
    """
    calls: dict[Function, cst.Call] = plan.facts.setdefault("engine_calls", {})
    found = {wrap.function: _NEVER for wrap in plan.wraps if wrap.function is not site.function}
    comes_wrapped = bool(found) and _takes_wrapped(plan, site.function)
    reached = {site.function: site.order}
    queue = [site.function]
    while queue:
        current = queue.pop()
        for call in plan.flow.callers.get(current, ()):
            caller = plan.function_of(call)
            if caller is site.function:
                continue
            order = plan.tree.statement(call).order
            if comes_wrapped and not _gives_back(plan, site, current, call, reached[current]):
                order = _NEVER
            if caller not in reached:
                queue.append(caller)
            elif not _is_earlier(plan, call, order, calls[caller], reached[caller]):
                continue
            reached[caller] = order
            calls[caller] = call
    del reached[site.function]
    return found | reached


def _is_earlier(plan: Plan, call: cst.Call, order: int, known: cst.Call, until: int) -> bool:
    """Whether a call makes the engine earlier than the one known so far: in an earlier statement, or part of one."""
    return order < until or (order == until and runs_behind(plan.tree, known, call))


def _takes_wrapped(plan: Plan, function: Function) -> bool:
    """Whether a function gets the wrapped model as an argument."""
    return any(
        tag[0] == "E" and tag[1:] in plan.group
        for param in function.params
        for tag in plan.roles.env.get(("v", id(function), param), ())
    )


def _gives_back(plan: Plan, site: EngineSite, function: Function, call: cst.Call, since: int) -> bool:
    """Whether the caller of a function has the engine afterwards: as the value of the call, or in an object."""
    if "." in site.target:
        return True
    if isinstance(plan.tree.statement(call).node, cst.Expr):
        return False
    return any(
        any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.roles.of(sub, function))
        for statement in function.statements
        if isinstance(statement.node, cst.Return) and statement.order > since
        for sub in descendants(statement.node)
        if isinstance(sub, cst.Name | cst.Attribute)
    )
