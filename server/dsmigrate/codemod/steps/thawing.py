"""MG607: requires_grad switched on parameters of the model after the engine is made, by the script or by the model."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.module_weights import is_within
from dsmigrate.codemod.steps.modules import is_method_of_a_module, runs_later
from dsmigrate.codemod.steps.owned import belongs
from dsmigrate.codemod.steps.thawing_helpers import is_handed_later
from dsmigrate.codemod.tree import Node, Statement


def run(plan: Plan) -> None:
    """Let the config have ZeRO 0 where parameters are frozen or thawed later."""
    for statement in plan.tree.statements:
        switched = _switched(statement)
        if switched is None or plan.is_before_engine(statement.node):
            continue
        owner, value = switched
        if (
            (belongs(plan, owner, statement) and _after_engine_for_sure(plan, statement))
            or (
                is_within(plan, owner, statement.function)
                and _is_called_later(plan, statement)
                and not _is_frozen_already(plan, statement, value)
            )
            or is_handed_later(plan, owner, value, statement)
        ):
            plan.needs_stage_zero("MG607", statement, "requires_grad is switched after the engine is made",
                                  "ZeRO 1-3 partition the trainable parameters once")  # fmt: skip


def _switched(statement: Statement) -> tuple[Node, Node | None] | None:
    """What a statement freezes or thaws, and what it sets: ``p.requires_grad = on``, ``layer.requires_grad_(on)``."""
    node = statement.node
    if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute):
        target = node.targets[0].target
        return (target.value, node.value) if target.attr.value == "requires_grad" else None
    call = node.value if isinstance(node, cst.Expr) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_":
        return call.func.value, call.args[0].value if call.args else None
    return None


def _after_engine_for_sure(plan: Plan, statement: Statement) -> bool:
    """Whether a statement runs after the engine exists: in its function behind it, or in a function of the loop."""
    site = plan.site
    if site is None:
        return False
    if statement.function is site.function:
        return statement.order > site.order
    callers = plan.flow.callers.get(statement.function, ())
    return bool(callers) and not all(plan.is_before_engine(call) for call in callers)


def _calls(plan: Plan, statement: Statement) -> list[cst.Call]:
    """The calls that may run the method a statement stands in: the known ones, else those of its name."""
    function = statement.function
    return plan.flow.callers.get(function, []) or [
        call
        for call in plan.tree.calls
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == function.name
        and plan.flow.callee(call) is None
    ]


def _is_called_later(plan: Plan, statement: Statement) -> bool:
    """Whether a method of a module runs while it trains: ``forward``, or one that is called behind the engine."""
    function = statement.function
    if not is_method_of_a_module(plan, function):
        return False
    return function.name == "forward" or any(
        not plan.is_before_engine(call) and runs_later(plan, plan.function_of(call)) for call in _calls(plan, statement)
    )


def _is_frozen_already(plan: Plan, statement: Statement, value: Node | None) -> bool:
    """Whether a method only repeats what the beginning of the module did: it freezes, and ``__init__`` calls it as well."""
    if value is None or dotted(value) != "False":
        return False
    calls = _calls(plan, statement)
    return not any(call.args for call in calls) and any(not runs_later(plan, plan.function_of(call)) for call in calls)
