"""MG902 and MG913 again: objects of the script that hold an optimizer and step it (NoamOpt), in ways an engine cannot follow."""

from __future__ import annotations

import itertools

import libcst as cst

from dsmigrate.codemod.holders import held_name, is_holder
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import excludes
from dsmigrate.codemod.steps.never_called import may_run
from dsmigrate.codemod.tree import Statement


def check(plan: Plan) -> None:
    """Raise ``RefusedError`` where two of them are made, or a scaler is given one to step."""
    if not plan.flow.holders:
        return
    for call in plan.tree.calls:
        _scaled(plan, call)
    for first, second in itertools.combinations(_made(plan), 2):
        if not excludes(first, second):
            raise plan.refuse(
                "MG902", second, f"a second object that steps an optimizer is made (the first in line {first.line})",
                "an engine takes exactly one optimizer",
            )  # fmt: skip


def _scaled(plan: Plan, call: cst.Call) -> None:
    """``scaler.step(noam)``: the scaler runs the object's own step, which the engine has no part in."""
    function = plan.function_of(call)
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step" or not call.args:
        return
    place = plan.flow.place(call.args[0].value, function)
    if place is not None and plan.flow.callee(call) is None and is_holder(plan.flow, place):
        text = plan.code(call.args[0].value)
        raise plan.refuse(
            "MG913", call, f"{plan.code(call.func)} runs the step of {text}, an object of the script that holds the optimizer",
            f"the scaler has to step the optimizer itself, inside of {text}.step()",
        )  # fmt: skip


def _made(plan: Plan) -> list[Statement]:
    """The statements of this training that make such objects."""
    found = {
        plan.tree.statement(call)
        for call in plan.tree.calls
        if (cls := plan.flow.made_class(call, plan.function_of(call))) is not None
        and held_name(plan.flow, cls) is not None
        and may_run(plan, plan.function_of(call))
    }
    return sorted(found, key=lambda statement: statement.order)
