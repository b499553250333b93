"""MG708: compiled wrappers around the model, which are in the engine's way."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.half import makes_model
from dsmigrate.codemod.steps.prefixed import DEPTH, is_wrapped
from dsmigrate.codemod.tree import Node, descendants

IDEAS = (
    Idea(
        "MG708",
        "The model is compiled in place",
        "model.compile() compiles the module itself; torch.compile's wrapper fails at ZeRO 3, and around DDP it was the outer one.",
        "The engine hooks the modules that it was given; a wrapper around them breaks the hooks at stage 3. A wrapper that was put "
        "around DDP would come to stand inside the engine, where .module gave the plain model: names of weights would begin "
        "with _orig_mod.",
        "measured against DeepSpeed 0.19.8, torch 2.13",
        Kind.CONVERTED,
    ),
)

_AT_STAGE_3 = "a compiled wrapper fails in its first forward at ZeRO 3"
_AROUND = "the compiled wrapper stood around DDP; inside the engine it would change what .module gives and the names of weights"


def run(plan: Plan) -> None:
    """Compile in place at ZeRO 3, and at any stage where the compiled wrapper stood around DDP."""
    around = []
    for call in plan.tree.calls:
        if "torch.compile" not in plan.imports.names(call.func) or not call.args:
            continue
        wraps = [wrap for wrap in plan.wraps if wrap.call in descendants(call.args[0].value)]
        ours = plan.is_ours(call.args[0].value)
        if wraps or (ours and is_wrapped(plan, call.args[0].value, plan.tree.statement(call), DEPTH)):
            around.append(call)
            _in_place(plan, call, _AROUND, holds_wrap=bool(wraps))
        elif plan.zero_stage == 3:
            if ours:
                _in_place(plan, call, _AT_STAGE_3)
            else:
                _compiled_where_made(plan, call)
    if around:
        _unwrapped(plan)


def _in_place(plan: Plan, call: cst.Call, why: str, *, holds_wrap: bool = False) -> None:
    """``model = torch.compile(model)``: the module is compiled, and no wrapper is made."""
    statement = plan.tree.statement(call)
    node, given = statement.node, call.args[0].value
    is_set = isinstance(node, cst.Assign) and node.value is call and len(node.targets) == 1
    if not is_set or node in plan.edits.statements:
        plan.todo(
            "MG708", statement, "compile the model in place: model.compile() in the stead of torch.compile(model)", why
        )
        return
    assert isinstance(node, cst.Assign)
    target, model = plan.code(node.targets[0].target), plan.code(given)
    rest = ", ".join(plan.code(arg).rstrip(", ") for arg in call.args[1:])
    if holds_wrap:
        plan.edits.replace(call, lambda updated: updated.args[0].value)  # type: ignore[attr-defined]
        plan.edits.insert_after(statement.line_node, f"{target}.compile({rest})")
    else:
        module = _module(plan, call, given)
        plan.edits.substitute(node, f"{module}.compile({rest})", *([] if target == model else [f"{target} = {model}"]))
    plan.converted(
        "MG708", statement, f"torch.compile({model}) → {target if holds_wrap else model}.compile(), in place", why
    )


def _module(plan: Plan, call: cst.Call, given: Node) -> str:
    """What is compiled: the engine's module, the model itself, or what the method gets that is called before and after."""
    model = plan.code(given)
    if not plan.is_engine(given):
        return model
    if _is_behind_engine(plan, call, DEPTH):
        return f"{model}.module"
    plan.need("deepspeed")
    return f"({model}.module if isinstance({model}, deepspeed.DeepSpeedEngine) else {model})"


def _is_behind_engine(plan: Plan, call: cst.Call, depth: int) -> bool:
    """Whether a call surely runs after the engine is made."""
    if plan.is_before_engine(call) or depth == 0:
        return False
    function = plan.function_of(call)
    if plan.site is not None and function is plan.site.function:
        return True
    callers = [other for other in plan.flow.callers.get(function, ()) if plan.function_of(other) is not function]
    return bool(callers) and all(_is_behind_engine(plan, other, depth - 1) for other in callers)


def _unwrapped(plan: Plan) -> None:
    """``model._orig_mod`` looked through the compiled wrapper that is gone; a test for it still tells what comes."""
    for statement in plan.tree.statements:
        for sub in descendants(statement.node) if isinstance(statement.node, cst.BaseSmallStatement) else ():
            if isinstance(sub, cst.Attribute) and sub.attr.value == "_orig_mod" and plan.is_ours(sub.value):
                if any(
                    isinstance(o, cst.If | cst.IfExp) and "_orig_mod" in plan.code(o.test)
                    for o in plan.tree.ancestors(sub)
                ):
                    continue
                plan.edits.replace(sub, lambda updated: updated.value)  # type: ignore[attr-defined]
                plan.converted(
                    "MG708", statement, f"{plan.code(sub)} → {plan.code(sub.value)}", "the compiled wrapper is gone"
                )


def _compiled_where_made(plan: Plan, call: cst.Call) -> None:
    """``model = torch.compile(Net())``: the model is made first and compiled in place then."""
    if not makes_model(plan, call):
        return
    statement = plan.tree.statement(call)
    node = statement.node
    simple = (
        isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0].target, cst.Name | cst.Attribute)
    )
    if not simple or any(wrap.statement is statement for wrap in plan.wraps):
        plan.todo("MG708", statement, "compile the model in place (model.compile()) at ZeRO stage 3",
                  "a compiled wrapper fails in its first forward")  # fmt: skip
        return
    assert isinstance(node, cst.Assign)
    target = plan.code(node.targets[0].target)
    rest = ", ".join(plan.code(arg).rstrip(", ") for arg in call.args[1:])
    plan.edits.replace(call, lambda updated: updated.args[0].value)  # type: ignore[attr-defined]
    plan.edits.insert_after(statement.line_node, f"{target}.compile({rest})")
    plan.converted("MG708", statement, f"torch.compile(…) → {target}.compile(), in place", _AT_STAGE_3)
