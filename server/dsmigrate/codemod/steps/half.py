"""MG305, MG308: models in half precision, by the script or on request."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.carrying import carry_branches
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.training_after import is_evaluation
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG305",
        "A model in half precision",
        "model.half() and model.bfloat16() become the fp16 or bf16 section of the config.",
        "The engine keeps fp32 master weights for half-precision parameters, which plain DDP does not.",
        "deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.TODO,
    ),
    Idea(
        "MG308",
        "Half-precision parameters, as asked for",
        "--precision fp16 or bf16 replaces autocast by half-precision parameters with fp32 master weights.",
        "Less memory and communication, but not the numerics of autocast (about 1e-2 relative in the loss).",
        "engine-semantics 2",
        Kind.TODO,
    ),
)


def half_as_asked(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    """``--precision fp16`` and ``bf16``: half-precision parameters with fp32 master weights instead of autocast."""
    kind = plan.options.precision
    section: dict[str, object] = {"enabled": True}
    if kind == "fp16":
        section["auto_cast"] = True
    plan.config[kind] = section
    where = regions[0][1] if regions else plan.wraps[0].statement
    for _, statement in regions:
        plan.kept("MG308", statement, "this autocast region still covers the loss; the engine switches it off for the model",
                  "the parameters are half precision now")  # fmt: skip
    message = f"the parameters are {kind} now: " + (
        "cast the model's inputs to bfloat16, and compute the loss in float32"
        if kind == "bf16"
        else "inputs are cast by the engine; compute the loss in float32"
    )
    plan.todo("MG308", where, message, "asked for by --precision; not the numerics of the original")


def half_model(plan: Plan) -> None:
    """Find a model that the script casts to half precision, and give the config its section."""
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in ("half", "bfloat16") or call.args:
            continue
        if not makes_model(plan, call):
            continue
        statement = plan.tree.statement(call)
        if plan.is_engine(func.value) or is_evaluation(plan, statement):
            continue
        outer_call = plan.tree.parent.get(call)
        if isinstance(outer_call, cst.Attribute) and outer_call.attr.value == "float":
            continue
        section = "fp16" if func.attr.value == "half" else "bf16"
        plan.config[section] = {"enabled": True}
        condition = carry_branches(plan, statement)
        if condition is not None:
            plan.set_at_run_time((section, "enabled"), f"bool({condition})", statement)
        plan.todo("MG305", statement, f"the model is {func.attr.value} here: the config enables {section}, with fp32 master weights",
                  "plain DDP updated the half-precision weights themselves")  # fmt: skip


def makes_model(plan: Plan, call: cst.Call) -> bool:
    """Whether a cast is part of the expression that makes, moves or wraps the whole trained model."""
    func = call.func
    if (
        isinstance(func, cst.Attribute)
        and isinstance(func.value, cst.Name | cst.Attribute)
        and plan.is_ours(func.value)
    ):
        return True
    node: Node = call
    while True:
        parent = plan.tree.parent.get(node)
        above = plan.tree.parent.get(parent) if parent is not None else None
        if isinstance(parent, cst.Attribute) and parent.attr.value in PASS_METHODS and isinstance(above, cst.Call):
            node = above
            continue
        break
    if any(wrap.model is node for wrap in plan.wraps):
        return True
    return any(
        binding.value is node
        and binding.index is None
        and plan.roles.env.get(binding.place, set()) & {f"R{k}" for k in plan.group}
        for binding in plan.flow.bindings
    )
