"""MG613: learning rates that only some ranks change."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.ranks import rank_guard
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG613",
        "Some ranks change the learning rate alone",
        "A schedule that is stepped, or a group that is written to, under a rank guard needs ZeRO 0.",
        "At ZeRO 1-3 every rank steps its own part of the parameters with its own learning rate: the parts would train at "
        "different rates. At ZeRO 0 each rank steps all parameters by itself, as it did under DDP.",
        "deepspeed/runtime/zero/stage_1_and_2.py, _optimizer_step",
        Kind.KEPT,
    ),
)

# Tests for a distributed run: they speak of the rank, and let all ranks in or none.
_ALL_RANKS = re.compile(r"[!=]=\s*-\s*1|>=\s*0|>\s*-\s*1|is not None")


def rank_rates(plan: Plan) -> None:
    """Let the config have ZeRO 0 where a learning rate is changed under a rank guard."""
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "step" and plan.roles.is_scheduler(func.value):
            _check(plan, plan.tree.statement(call))
    for statement in plan.tree.statements:
        targets = [target for target in assigned_to(statement.node) if isinstance(target, cst.Subscript)]
        if any(_is_group(plan, target.value, statement) for target in targets):
            _check(plan, statement)


def _check(plan: Plan, statement: Statement) -> None:
    guard = rank_guard(plan, statement)
    if guard is None or plan.is_before_engine(statement.node) or _ALL_RANKS.search(plan.code(guard.node.test)):  # type: ignore[attr-defined]
        return
    plan.needs_stage_zero("MG613", statement, "only some ranks change the learning rate here",
                          "at ZeRO 1-3 each rank steps its own part of the parameters, at its own rate")  # fmt: skip


def _is_group(plan: Plan, node: Node, statement: Statement) -> bool:
    """Whether an expression is a parameter group of an optimizer: ``o.param_groups[0]``, or a loop over them."""
    if isinstance(node, cst.Subscript):
        return _is_groups(plan, node.value, statement)
    if not isinstance(node, cst.Name):
        return False
    place = plan.flow.place(node, statement.function)
    return any(
        binding.kind == "for" and _is_groups(plan, _listed(binding.value), binding.statement)
        for binding in (plan.flow.by_place.get(place, ()) if place is not None else ())
    )


def _listed(node: Node) -> Node:
    """What ``enumerate(x)`` and ``zip(x, …)`` run over."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ("enumerate", "zip"):
        return node.args[0].value if node.args else node
    return node


def _is_groups(plan: Plan, node: Node, statement: Statement) -> bool:
    if not isinstance(node, cst.Attribute) or node.attr.value != "param_groups":
        return False
    return any(tag[0] == "O" for tag in plan.roles.of(node.value, statement.function))
