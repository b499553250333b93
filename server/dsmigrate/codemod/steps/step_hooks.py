"""MG520: what the script hangs on the optimizer's own step."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.bindings import literal_value
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement

IDEAS = (
    Idea(
        "MG520",
        "Something runs within the optimizer's step",
        "A hook of the optimizer's step, or a step that the script puts in its place, runs as under DDP at ZeRO 0 only.",
        "At ZeRO 1-3 the optimizer steps flat pieces, and the model's weights follow when its step is over: an average in a hook would "
        "take the weights of the step before. The config is given ZeRO stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py, step; run on two processes, ZeRO 0 and 2",
        Kind.KEPT,
    ),
)
_HOOKS = frozenset({"register_step_post_hook", "register_step_pre_hook"})
_OF_ALL = frozenset({"register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"})


def step_hooks(plan: Plan) -> None:
    """Let the config have ZeRO 0 where the optimizer's step is hooked or replaced."""
    for call in plan.tree.calls:
        if _hooks(plan, call):
            _needs_stage_zero(plan, plan.tree.statement(call), "a hook of the optimizer's step is registered here")
        elif dotted(call.func) == "setattr" and len(call.args) > 1 and literal_value(call.args[1].value) == "step":
            if _is_stepped(plan, call.args[0].value, plan.function_of(call)):
                _needs_stage_zero(plan, plan.tree.statement(call), "the optimizer's step is replaced here")
    for statement in plan.tree.statements:
        for target in assigned_to(statement.node):
            if isinstance(target, cst.Attribute) and target.attr.value == "step":
                if _is_stepped(plan, target.value, statement.function):
                    _needs_stage_zero(plan, statement, "the optimizer's step is replaced here")


def _hooks(plan: Plan, call: cst.Call) -> bool:
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in _HOOKS and plan.roles.is_optimizer(func.value):
        return True
    names = plan.imports.names(func)
    return any(name.startswith("torch.optim.") and name.rpartition(".")[2] in _OF_ALL for name in names)


def _is_stepped(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the trained optimizer, or a class of torch.optim."""
    if function.self_name is not None and dotted(node) == function.self_name:
        return False  # an optimizer class that counts its steps
    if plan.roles.is_scheduler(node):
        return False
    names = plan.imports.names(node)
    is_class = any(name.startswith("torch.optim.") and name.rpartition(".")[2][:1].isupper() for name in names)
    return plan.roles.is_optimizer(node) or is_class


def _needs_stage_zero(plan: Plan, statement: Statement, message: str) -> None:
    if plan.edits.is_removed(statement.node):
        return
    if plan.config.keys() & {"fp16", "bf16"}:
        plan.todo("MG520", statement, f"{message}, which sees a float32 copy of the weights",
                  "half-precision weights follow when the step is over, at every ZeRO stage")  # fmt: skip
        return
    plan.needs_stage_zero("MG520", statement, message, "ZeRO 1-3 step flat pieces, and the weights follow later")
