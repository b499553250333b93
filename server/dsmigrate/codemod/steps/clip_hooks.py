"""Clips and steps in functions of their own: whether each step still comes right behind its clip."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.sites import find_steps


def unclipped_steps(plan: Plan, clips: list[cst.Call]) -> list[cst.Call]:
    """Steps in functions that neither clip nor call what clips, where other steps are clipped."""
    clipping = {plan.function_of(call) for call in clips}
    for call in plan.tree.calls:
        if clips and plan.flow.callee(call) in clipping:
            clipping = clipping | {plan.function_of(call)} if _steps_beside(plan, call) else clipping
    return [
        call
        for call in find_steps(plan)
        if clips and plan.function_of(call) not in clipping and not _clipped_by_callers(plan, call, clips)
    ]


def _clipped_by_callers(plan: Plan, step: cst.Call, clips: list[cst.Call]) -> bool:
    """Whether a step in a function of its own is called behind a clip, wherever it is called."""
    before = [plan.tree.statement(clip) for clip in clips]
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(plan.function_of(step), ())]
    return bool(callers) and all(
        any(
            clip.function is caller.function
            and clip.order < caller.order
            and branches_to(clip) == branches_to(caller)[: len(branches_to(clip))]
            for clip in before
        )
        for caller in callers
    )


def _steps_beside(plan: Plan, call: cst.Call) -> bool:
    """Whether a call of a clipping hook stands in the branch in which its function steps."""
    statement = plan.tree.statement(call)
    return any(
        plan.function_of(step) is statement.function
        and branches_to(plan.tree.statement(step)) == branches_to(statement)
        for step in find_steps(plan)
    )


def called_beside_step(plan: Plan, call: cst.Call) -> bool:
    """Whether a clip in a function of its own (a hook) runs whenever the step does, and not more often."""
    steps = [plan.tree.statement(c) for c in find_steps(plan)]
    statement = plan.tree.statement(call)
    if any(step.function is statement.function for step in steps):
        return True
    stepping = {step.function for step in steps}
    hooks = [plan.tree.statement(c) for function in stepping for c in plan.flow.callers.get(function, ())]
    if any(one.function is statement.function and branches_to(one) == branches_to(statement) for one in hooks):
        return True
    callers = [plan.tree.statement(c) for c in plan.flow.callers.get(statement.function, ())]
    if not callers:
        return False
    beside = [*steps, *hooks]
    return all(
        any(one.function is caller.function and branches_to(one) == branches_to(caller) for one in beside)
        for caller in callers
    )
