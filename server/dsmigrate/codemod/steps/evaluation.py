"""MG306: evaluations that ran outside autocast, or in a region of their own, keep their precision."""

from __future__ import annotations

import sys

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import (
    calls_engine,
    calls_run,
    may_serve_training,
    serves_training,
    under_no_grad,
)
from dsmigrate.codemod.steps.regions import Region, in_region, resolve_region
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG306",
        "Evaluation in a precision of its own uses the module",
        "Where the script evaluated the model outside any autocast region, or in another one than training did, "
        "engine.module is called.",
        "The engine runs every forward as torch_autocast says: also outside a region, and in whatever region it is called.",
        "measured against DeepSpeed 0.19.8",
        Kind.CONVERTED,
    ),
)


def evaluation(plan: Plan) -> None:
    """Forward passes that ran outside any autocast region keep their precision through ``engine.module``."""
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if _is_outside_evaluation(plan, call):
            for arg in call.args:
                if (
                    isinstance(arg.value, cst.Name | cst.Attribute)
                    and plan.is_engine(arg.value)
                    and not in_region(plan, statement)
                ):
                    plan.edits.replace(arg.value, f"{plan.code(arg.value)}.module")
                    plan.converted("MG306", statement, f"{plan.code(arg.value)} → its module: evaluated outside autocast",
                                   "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip
            continue
        if not calls_engine(plan, call) or plan.is_before_engine(call):
            continue
        if in_region(plan, statement):
            continue
        if not under_no_grad(plan, statement) and may_serve_training(plan, statement.function):
            continue
        _run_module(plan, call, "this forward ran outside autocast",
                    "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip


def evaluate_in_own_regions(plan: Plan, regions: list[tuple[Node, Statement]], setting: Region | None) -> None:
    """Evaluations in a region that is not what the engine does run the module, which follows the region."""
    for node, statement in regions:
        if setting is not None and resolve_region(plan, node, statement) == setting:
            continue  # the engine does the same
        for call in _forwards_in(plan, statement):
            where = plan.tree.statement(call)
            if where.function is statement.function or not serves_training(plan, where.function):
                _run_module(plan, call, "this region is not that of training",
                            "the engine switches a surrounding region to what torch_autocast says")  # fmt: skip
            else:
                plan.todo("MG307", statement, "this region runs what training runs too, and is not that of training",
                          "the engine uses one setting for every forward")  # fmt: skip


def _forwards_in(plan: Plan, statement: Statement) -> list[cst.Call]:
    """Forward passes of the trained model within a region, also in the functions that are called there."""
    calls = [c for c in plan.tree.calls if statement.order < plan.tree.statement(c).order <= statement.last_order]
    return [call for call in (*calls, *calls_run(plan, calls)) if calls_engine(plan, call)]


def _run_module(plan: Plan, call: cst.Call, what: str, why: str) -> None:
    func, statement = call.func, plan.tree.statement(call)
    done: set[cst.Call] = plan.facts.setdefault("module_runs", set())
    if call in done or not isinstance(func, cst.Name | cst.Attribute) or not plan.is_engine(func):
        return
    if any(tag[0] == "N" for tag in plan.tags(func)):
        return
    done.add(call)
    # Scripts outside of the set may call a module's function with a plain model.
    if _may_be_raw(plan, func) or plan.part_of(statement) is not plan.tree.parts[0]:
        plan.edits.replace(func, f'getattr({plan.code(func)}, "module", {plan.code(func)})')
    else:
        plan.edits.replace(func, f"{plan.code(func)}.module")
    plan.converted("MG306", statement, f"{plan.code(func)}(…) → the engine's module: {what}", why)


def _is_outside_evaluation(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs an evaluation that another module defines: it is called so, or nothing below it can train."""
    if plan.flow.callee(call) is not None:
        return False
    name = dotted(call.func) or ""
    words = ("evaluate", "validate", "validation", "eval_", "test_model", "run_eval", "estimate_loss")
    if any(word in name.rpartition(".")[2].lower() for word in words):
        return True
    statement = plan.tree.statement(call)
    meanings = plan.imports.meanings(name.partition(".")[0], statement.function)
    foreign = {meaning.partition(".")[0] for meaning in meanings} - {"torch", "deepspeed", *sys.stdlib_module_names}
    return bool(foreign) and under_no_grad(plan, statement)


def _may_be_raw(plan: Plan, node: Node) -> bool:
    """Whether a parameter is handed both wrapped and other models by its callers, or a module calls its own part.

    What a model keeps may have had the name of the wrapped model before that was wrapped; it runs inside of the engine.
    """
    function = plan.function_of(node)
    if isinstance(node, cst.Attribute) and isinstance(function.node, cst.FunctionDef):
        return function.node.name.value == "forward"
    if not isinstance(node, cst.Name) or node.value not in function.params:
        return False
    for binding in plan.flow.by_place.get(("v", id(function), node.value), ()):
        tags = plan.roles.of(binding.value, binding.function)
        if not any(tag[0] == "E" for tag in tags):
            return True
    return False
