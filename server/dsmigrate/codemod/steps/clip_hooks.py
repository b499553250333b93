"""Clips and steps in functions of their own: whether each step still comes right behind its clip."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import CLIP_NORM, CLIP_VALUE, qualifies
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.forwards_beside import branches_apart, paths_to
from dsmigrate.codemod.steps.gradients import clears_part, touches_gradients
from dsmigrate.codemod.steps.owned_part import owned_part
from dsmigrate.codemod.steps.sites import find_backward, find_steps
from dsmigrate.codemod.tree import Function, Statement

_FREEZES = re.compile(r"\brequires_grad_\(\s*(?!True\b)[^)\s]|\.requires_grad\s*=(?!=)")
_OFF = re.compile(r"\.requires_grad(?:_\(|\s*=)\s*False")
_FREEZERS = re.compile(r"(?<!un)freeze|frozen|trainable|requires_grad|peft|lora", re.IGNORECASE)


def unclipped_steps(plan: Plan, clips: list[cst.Call]) -> list[cst.Call]:
    """Steps in functions or loops that neither clip nor call what clips, where other steps are clipped."""
    clipping = {plan.function_of(call) for call in clips}
    for call in plan.tree.calls:
        if clips and plan.flow.callee(call) in clipping:
            clipping = clipping | {plan.function_of(call)} if _steps_beside(plan, call) else clipping
    return [
        call
        for call in find_steps(plan)
        if clips and (plan.function_of(call) not in clipping or _in_another_loop(plan, call, clips))
        if not _clipped_by_callers(plan, call, clips)
    ]


def _in_another_loop(plan: Plan, step: cst.Call, clips: list[cst.Call]) -> bool:
    """Whether the loop that computes the gradients of a step has no clip, while the function has one."""
    clipping = [one for clip in clips for path in paths_to(plan, plan.tree.statement(clip)) for one in path]
    backwards = [
        one for call in find_backward(plan) for path in paths_to(plan, plan.tree.statement(call)) for one in path
    ]
    for outer in plan.tree.statement(step).enclosing():
        if isinstance(outer.node, cst.For | cst.While) and any(_is_within(one, outer) for one in backwards):
            return not any(_is_within(one, outer) for one in clipping)
    return False


def _is_within(statement: Statement, outer: Statement) -> bool:
    return statement.function is outer.function and outer.order < statement.order <= outer.last_order


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


def tell_of_other_norms(plan: Plan, taken: list[cst.Call], stay: list[cst.Call]) -> None:
    """Tell of norms of the whole model that the engine takes, or that ``stay``, where the optimizer owns a part of it."""
    sites = _in_use(plan) if taken or stay else []
    owned = [found for site in sites if (found := owned_part(plan, site)) is not None]
    if not owned or _freezes_all(plan):
        return
    part = owned[0].text
    is_sure = owned[0].is_sure and len(owned) == len(sites) and not _may_freeze(plan)
    cleared = [s.node.value for s in plan.facts["sites"].zeroes if isinstance(s.node, cst.Expr)]
    whole = cleared and all(isinstance(c, cst.Call) and not _is_of_optimizer(plan, c) for c in cleared)
    for call in taken:
        if not is_sure:
            plan.kept("MG421", call, f"the norm is now over what the optimizer owns ({part}): let what it leaves out of the model be "
                      "frozen, or the norm was another one", "at ZeRO 1-3 the engine's norm is over what the optimizer owns")  # fmt: skip
        elif whole:
            plan.needs_stage_zero("MG423", call, f"the optimizer owns {part} only, and the norm is that of the whole model",
                                  "at ZeRO 1-3 the engine's norm is over what the optimizer owns")  # fmt: skip
        else:
            plan.todo("MG421", call, f"the optimizer owns {part} only, which is a part of the parameters whose norm was taken; it is "
                      "another one now: freeze the others, or take the norm of what the optimizer owns",
                      "at ZeRO 1-3 the engine's norm is over what the optimizer owns; under DDP the gradients of the others "
                      "counted, and added up where optimizer.zero_grad() left them")  # fmt: skip
    for call in stay if is_sure and not whole else ():
        plan.todo("MG423", call, f"the optimizer owns {part} only, and optimizer.zero_grad() left the gradients of the others to add up in "
                  "this norm; engine.step() clears them all: freeze the others, or clip what the optimizer owns",
                  "engine.zero_grad() goes over all parameters of the module")  # fmt: skip


def _in_use(plan: Plan) -> list[OptimizerSite]:
    """The optimizers, without those of functions that nobody is seen to call, where there are others."""
    sites = plan.roles.optimizers
    called = [s for s in sites if s.statement.function.is_module or plan.flow.callers.get(s.statement.function)]
    return called or sites


def _freezes_all(plan: Plan) -> bool:
    """Whether the whole model is frozen somewhere, so that what trains was thawed on purpose."""
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func = node.value.func
            given = [plan.code(arg.value) for arg in node.value.args]
            if isinstance(func, cst.Attribute) and func.attr.value == "requires_grad_" and given == ["False"]:
                if plan.is_ours(func.value):
                    return True
        if isinstance(node, cst.For) and isinstance(node.iter, cst.Call) and isinstance(node.iter.func, cst.Attribute):
            lines = plan.code(node.body).split("\n")
            is_all = node.iter.func.attr.value in ("parameters", "named_parameters") and plan.is_ours(
                node.iter.func.value
            )
            if is_all and not any(re.match(r"\s*if\b", line) for line in lines) and _OFF.search(plan.code(node.body)):
                return True
    return False


def _may_freeze(plan: Plan) -> bool:
    """Whether something is frozen anywhere, here or by a function of a library."""
    if any(_FREEZES.search(text) for text in plan.facts["texts"]):
        return True
    named = [call for call in plan.tree.calls if _FREEZERS.search((dotted(call.func) or "").rpartition(".")[2])]
    return any(plan.flow.callee(call) is None for call in named)


def _is_of_optimizer(plan: Plan, call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and plan.roles.is_optimizer(call.func.value)


def looked_at_behind(plan: Plan, call: cst.Call) -> bool:
    """Whether code between a clip and the step reads or changes the gradients: the engine would clip after it."""
    clip = plan.tree.statement(call)
    steps = [plan.tree.statement(step).order for step in find_steps(plan) if plan.function_of(step) is clip.function]
    until = min((order for order in steps if order > clip.order), default=None)
    looks = {s for look in plan.facts.get("looks", ()) for path in paths_to(plan, look) for s in path}
    looks |= {s for other in _that_touch(plan, clip.function) for s in other}
    return any(
        look.function is clip.function
        and clip.order < look.order
        and (until is None or look.order < until)
        and not branches_apart((clip,), (look,))
        for look in looks
    )


def _that_touch(plan: Plan, function: Function) -> list[tuple[Statement, ...]]:
    """Calls that may work on gradients, by their name or as they clear a part, that are made in a function or under it."""
    found = []
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if call in plan.handled or plan.edits.is_removed(statement.node) or statement.node in plan.edits.statements:
            continue
        if clears_part(plan, call):
            found += list(paths_to(plan, statement))
        elif statement.function is function and not qualifies(plan.imports, call.func, CLIP_NORM | CLIP_VALUE):
            found += [(statement,)] if touches_gradients(plan, call) else []
    return found
