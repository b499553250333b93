"""MG306: forward passes that ran outside any autocast region keep their precision."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import calls_engine, may_serve_training, under_no_grad
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG306",
        "Evaluation outside autocast uses the module",
        "Where the script ran the model outside any autocast region, engine.module is called.",
        "With torch_autocast enabled the engine autocasts every forward, also outside a region.",
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
                    and not _in_region(plan, statement)
                ):
                    plan.edits.replace(arg.value, f"{plan.code(arg.value)}.module")
                    plan.converted("MG306", statement, f"{plan.code(arg.value)} → its module: evaluated outside autocast",
                                   "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip
            continue
        if not calls_engine(plan, call) or plan.is_before_engine(call):
            continue
        if _in_region(plan, statement):
            continue
        if not under_no_grad(plan, statement) and may_serve_training(plan, statement.function):
            continue
        func = call.func
        tags = plan.tags(func)
        if any(tag[0] == "N" for tag in tags) or not isinstance(func, cst.Name | cst.Attribute):
            continue
        if not plan.is_engine(func):
            continue
        # Scripts outside of the set may call a module's function with a plain model.
        if _may_be_raw(plan, func) or plan.part_of(statement) is not plan.tree.parts[0]:
            plan.edits.replace(func, f'getattr({plan.code(func)}, "module", {plan.code(func)})')
        else:
            plan.edits.replace(func, f"{plan.code(func)}.module")
        plan.converted("MG306", statement, f"{plan.code(func)}(…) → the engine's module: this forward ran outside autocast",
                       "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip


def _is_outside_evaluation(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs an evaluation that another module defines."""
    last = (dotted(call.func) or "").rpartition(".")[2].lower()
    words = ("evaluate", "validate", "validation", "eval_", "test_model", "run_eval", "estimate_loss")
    return plan.flow.callee(call) is None and any(word in last for word in words)


def _in_region(plan: Plan, statement: Statement) -> bool:
    return any(
        isinstance(outer.node, cst.With)
        and any("C" in plan.tags(i.item) or may_be_autocast(i.item) for i in outer.node.items)
        for outer in (statement, *statement.enclosing())
    )


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


def may_be_autocast(node: Node) -> bool:
    """A parameter or attribute that callers outside this file fill, by its name; or a factory such as get_autocast()."""
    text = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    last = text.rpartition(".")[2].lower()
    return "autocast" in last or last in ("amp_context", "amp_ctx")
