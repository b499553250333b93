"""MG523: starts of the script that only evaluate, and have no optimizer for the engine, or never come to where it is made."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import EngineSite, Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.implied_tests import is_implied, is_stable, parts_of
from dsmigrate.codemod.tree import Function, Statement

IDEAS = (
    Idea(
        "MG523",
        "A start that only evaluates has no optimizer, or no engine",
        "The optimizer is made under a condition that deepspeed.initialize does not have, or an evaluation may be started "
        "without the function that makes the engine.",
        "DDP wraps a model without asking for an optimizer. deepspeed.initialize is given one: `--eval-only` stops at a name that "
        "is not set, or at ZeRO 1-3, which require an optimizer. Where the wrap stood in a constructor and the engine is made "
        "where training begins, an evaluation that is started alone has the plain model: the keys of its state have no "
        "'module.', those of a file that the wrapped model wrote have.",
        "deepspeed/runtime/engine.py, _configure_distributed_model and _configure_optimizer; run on two processes with 0.19.8",
        Kind.TODO,
    ),
)


def run(plan: Plan) -> None:
    """Mark the engine where a start has no optimizer for it, and loads of starts that have no engine."""
    if plan.site is None:
        return
    _without_optimizer(plan, plan.site)
    _without_engine(plan, plan.site)


def _without_optimizer(plan: Plan, site: EngineSite) -> None:
    place = plan.flow.place(cst.parse_expression(site.optimizer), site.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    made = [b.statement for b in bindings if b.function is site.function and dotted(b.value) != "None"]
    if len(made) != 1:
        return  # one of several branches makes it: any other start fails in the script itself
    around = set(branches_to(site.anchor))
    further = [
        (node.test, branch)
        for node, branch in branches_to(made[0])
        if isinstance(node, cst.If) and (node, branch) not in around
        if not is_implied(plan, node.test, branch, made[0], site.anchor)
    ]
    needed = {
        (plan.code(part), holds)
        for test, branch in further
        for part, holds in parts_of(test, holds=branch == "body")
        if is_stable(part, made[0], site.anchor)
    }
    found = {shown for statement, shown in _opposite(plan, site, needed) if statement.order > site.anchor.last_order}
    leaves = any(
        statement.order < site.anchor.order and isinstance(statement.node, cst.Return | cst.Raise)
        for statement, _ in _opposite(plan, site, needed)
    )
    if found and not leaves:
        plan.todo("MG523", site.anchor, f"no optimizer is made where {min(found)}, and deepspeed.initialize is given one: make it for such a start "
                  "too, or evaluate before this line", "DDP wrapped the model without an optimizer")  # fmt: skip


def _opposite(plan: Plan, site: EngineSite, needed: set[tuple[str, bool]]) -> Iterator[tuple[Statement, str]]:
    """The statements that run where one of some conditions is not met, each with the test that says so."""
    for statement in site.function.statements if needed else ():
        for node, branch in branches_to(statement):
            if not isinstance(node, cst.If):
                continue
            for part, holds in parts_of(node.test, holds=branch == "body"):
                if (plan.code(part), not holds) in needed:
                    yield statement, f"{plan.code(part)} is {'true' if holds else 'false'}"


def _without_engine(plan: Plan, site: EngineSite) -> None:
    owner, own = site.function.class_seen, site.function.self_name
    if owner is None or own is None or not site.target.startswith(f"{own}."):
        return
    if not any(wrap.function.name == "__init__" for wrap in plan.wraps):
        return
    for call in plan.tree.calls:
        func, function = call.func, plan.function_of(call)
        if not isinstance(func, cst.Attribute) or func.attr.value != "load_state_dict" or function is site.function:
            continue
        cls = function.class_seen
        if cls is None or plan.flow.family(cls) != plan.flow.family(owner) or not plan.is_ours(func.value):
            continue
        if dotted(func.value) == f"{function.self_name}.{site.target.partition('.')[2]}" and _starts(
            plan, site, function
        ):
            plan.todo("MG523", call, f"where this runs without {site.function.name}(), the model is no engine and the keys of its state have no "
                      "'module.': take it off those of a file that the wrapped model wrote",
                      "the engine is made where training begins, DDP wrapped the model when the object was made")  # fmt: skip


def _starts(plan: Plan, site: EngineSite, function: Function) -> bool:
    """Whether a method may be called on an object that has made no engine yet."""
    makers = [plan.tree.statement(call) for call in _calls(plan, site.function)]
    for call in _calls(plan, function):
        statement = plan.tree.statement(call)
        if statement.function is site.function or statement.function.class_seen is not None:
            continue
        path = branches_to(statement)
        if not any(
            maker.function is statement.function
            and maker.order < statement.order
            and branches_to(maker) == path[: len(branches_to(maker))]
            for maker in makers
        ):
            return True
    return False


def _calls(plan: Plan, method: Function) -> list[cst.Call]:
    """The calls of a method, on objects that are not known too (``Exp = Main; Exp(args).test()``)."""
    return [
        call
        for call in plan.tree.calls
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == method.name
        and plan.flow.callee(call) in (method, None)
    ]
