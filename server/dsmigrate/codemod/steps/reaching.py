"""Which calls run the engine through functions of the project, and which functions work for a training step."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.dispatch import find_method
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Statement


def runs_engine(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the forward pass of the trained model, by itself or in a function that it calls."""
    return calls_engine(plan, call) or any(_holds_run(plan, function) for function in _run_by(plan, call))


def _holds_run(plan: Plan, function: Function) -> bool:
    known: dict[Function, bool] = plan.facts.setdefault("runs_engine", {})
    if function not in known:
        known[function] = False  # functions that call each other
        known[function] = any(runs_engine(plan, call) for call in calls_in(plan).get(function, ()))
    return known[function]


def calls_run(plan: Plan, calls: Sequence[cst.Call]) -> list[cst.Call]:
    """The calls in the functions of the project that ``calls`` run, and in those that these run."""
    known: set[Function] = set()
    found: list[cst.Call] = []
    queue = list(calls)
    while queue:
        for function in _run_by(plan, queue.pop()):
            if function not in known:
                known.add(function)
                inner = calls_in(plan).get(function, [])
                found += inner
                queue += inner
    return found


def _run_by(plan: Plan, call: cst.Call) -> list[Function]:
    """The functions of the project that a call runs; a module's object runs its ``forward``."""
    found = plan.flow.callees(call)
    place = plan.place_of(call.func) if not found else None
    forwards = (find_method(plan.flow, cls, "forward") for cls in plan.flow.kinds.get(place, ())) if place else ()
    return found or [function for function in forwards if function is not None]


def calls_in(plan: Plan) -> dict[Function, list[cst.Call]]:
    """The calls that stand in each function; a function without any has no entry."""
    table: dict[Function, list[cst.Call]] | None = plan.facts.get("calls_in")
    if table is None:
        table = plan.facts["calls_in"] = {}
        for call in plan.tree.calls:
            table.setdefault(plan.function_of(call), []).append(call)
    return table


def serves_training(plan: Plan, function: Function) -> bool:
    """Whether a function runs forward and backward of a step, or is called by one that does, outside of ``no_grad``."""
    serving: set[Function] | None = plan.facts.get("serves_training")
    if serving is None:
        serving = set(_with_forward(plan))
        queue = list(serving)
        while queue:
            for call in calls_in(plan).get(queue.pop(), ()):
                if not under_no_grad(plan, plan.tree.statement(call)):
                    more = [f for f in _run_by(plan, call) if f not in serving and not _without_gradients(plan, f)]
                    serving.update(more)
                    queue.extend(more)
        plan.facts["serves_training"] = serving
    return function in serving


def may_serve_training(plan: Plan, function: Function, depth: int = 4) -> bool:
    """As ``serves_training``; a method that is called from out of sight (a module's ``forward``) may do so too."""
    if serves_training(plan, function):
        return True
    callers = {plan.function_of(call) for call in plan.flow.callers.get(function, ())} - {function}
    if not callers:
        return function.owner is not None
    return depth > 0 and any(
        caller.owner is not None and may_serve_training(plan, caller, depth - 1) for caller in callers
    )


def trains(plan: Plan, function: Function) -> bool:
    """Whether a function runs backward, or hands the loss that it has computed to one that does."""
    return function in _with_forward(plan)


def leads_to_backward(plan: Plan, statement: Statement) -> bool:
    """Whether a backward pass runs in what a compound statement runs, as in a region around a call of the whole loop."""
    calls = [c for c in plan.tree.calls if statement.order < plan.tree.statement(c).order <= statement.last_order]
    return not set(find_backward(plan)).isdisjoint([*calls, *calls_run(plan, calls)])


def _with_forward(plan: Plan) -> set[Function]:
    known: set[Function] | None = plan.facts.get("with_forward")
    if known is not None:
        return known
    found = plan.facts["with_forward"] = {plan.function_of(call) for call in find_backward(plan)}
    queue = list(found)
    while queue:
        function = queue.pop()
        for call in plan.flow.callers.get(function, ()) if not _holds_run(plan, function) else ():
            if plan.function_of(call) not in found:
                found.add(plan.function_of(call))
                queue.append(plan.function_of(call))
    return found


def _without_gradients(plan: Plan, function: Function) -> bool:
    """Whether a function runs the model for its outputs alone: under ``no_grad``, or put into evaluation by it."""
    if not function.statements:
        return False
    return all(under_no_grad(plan, s) for s in function.statements) or (
        function not in _with_forward(plan)
        and any(_puts_into_evaluation(plan, c) for c in calls_in(plan).get(function, ()))
    )


def runs_for_outputs(plan: Plan, statement: Statement) -> bool:
    """Whether a statement runs without gradients, or in a function that runs the model for its outputs alone."""
    return under_no_grad(plan, statement) or _without_gradients(plan, statement.function)


def _puts_into_evaluation(plan: Plan, call: cst.Call) -> bool:
    func = call.func
    if not isinstance(func, cst.Attribute) or call.args:
        return False
    return func.attr.value == "eval" and any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.tags(func.value))


def under_no_grad(plan: Plan, statement: Statement) -> bool:
    """Whether a statement runs without gradients, by a region around it or a decorator of its function."""
    for outer in (statement, *statement.enclosing()):
        if isinstance(outer.node, cst.With) and any(
            "no_grad" in plan.code(i.item) or "inference_mode" in plan.code(i.item) for i in outer.node.items
        ):
            return True
    node = statement.function.node
    return isinstance(node, cst.FunctionDef) and any(
        "no_grad" in plan.code(d.decorator) or "inference_mode" in plan.code(d.decorator) for d in node.decorators
    )


def calls_engine(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the forward pass of the trained model."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in ("forward", "__call__"):
        func = func.value
    if isinstance(func, cst.Name | cst.Attribute | cst.Subscript):
        return any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.tags(func))
    return False
