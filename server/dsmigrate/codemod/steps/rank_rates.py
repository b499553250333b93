"""MG613: learning rates that only some ranks change, or each by a loss of its own; MG428 beside them."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.own_losses import is_own
from dsmigrate.codemod.steps.rank_forwards import guarded_places
from dsmigrate.codemod.steps.rank_steps import rank_steps
from dsmigrate.codemod.steps.ranks import rank_guard
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG613",
        "Some ranks change the learning rate alone",
        "A schedule that is stepped, or a group that is written to, under a rank guard or by the rank's own loss needs ZeRO 0.",
        "At ZeRO 1-3 every rank steps its own part of the parameters with its own learning rate: the parts would train at "
        "different rates. At ZeRO 0 each rank steps all parameters by itself, as it did under DDP.",
        "deepspeed/runtime/zero/stage_1_and_2.py, _optimizer_step",
        Kind.KEPT,
    ),
)

# Tests for a distributed run: they speak of the rank, and let all ranks in or none.
_ALL_RANKS = re.compile(r"[!=]=\s*-\s*1|>=\s*0|>\s*-\s*1|is not None")


def rank_rates(plan: Plan) -> None:
    """Let the config have ZeRO 0 where a learning rate is changed by some ranks only, and mark such steps."""
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "step" and plan.roles.is_scheduler(func.value):
            statement = plan.tree.statement(call)
            own = any(is_own(plan, arg.value, statement.function) for arg in call.args)
            _check(plan, statement, by_own_loss=own and _is_about_loss(plan, func.value))
    for statement in plan.tree.statements:
        targets = [target for target in assigned_to(statement.node) if isinstance(target, cst.Subscript)]
        if any(_is_group(plan, target.value, statement) for target in targets):
            _check(plan, statement)
    rank_steps(plan)


def _check(plan: Plan, statement: Statement, *, by_own_loss: bool = False) -> None:
    if plan.is_before_engine(statement.node):
        return
    if by_own_loss or _is_under_own_loss(plan, statement):
        plan.needs_stage_zero("MG613", statement, "each rank changes the learning rate by its own loss here",
                              "at ZeRO 1-3 each rank steps its own part of the parameters, at its own rate")  # fmt: skip
        return
    guard = rank_guard(plan, statement)
    if guard is not None and _ALL_RANKS.search(plan.code(guard.node.test)):  # type: ignore[attr-defined]
        return
    if guard is None and next(guarded_places(plan, statement.node), None) is None:
        return
    plan.needs_stage_zero("MG613", statement, "only some ranks change the learning rate here",
                          "at ZeRO 1-3 each rank steps its own part of the parameters, at its own rate")  # fmt: skip


def _is_under_own_loss(plan: Plan, statement: Statement) -> bool:
    """Whether a test of the rank's own loss decides about a statement."""
    tests = [outer.node.test for outer in statement.enclosing() if isinstance(outer.node, cst.If)]
    return any(is_own(plan, test, statement.function) for test in tests)


def _is_about_loss(plan: Plan, scheduler: Node) -> bool:
    """Whether the argument of a schedule's step is a metric, not an epoch: as for ReduceLROnPlateau."""
    place = plan.place_of(scheduler)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any("plateau" in plan.code(binding.value).lower() for binding in bindings)


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
