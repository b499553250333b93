"""The calls that a training loop consists of: backward, step, and what they go through."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.makers import is_inside_optimizer
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.refusals import stepped_optimizer
from dsmigrate.codemod.tree import Node, Statement


@dataclass(slots=True)
class Sites:
    """What the loops of a file do to gradients: backward calls, steps, and statements that clear."""

    backward: list[cst.Call]
    steps: list[cst.Call]
    zeroes: list[Statement]


def find_backward(plan: Plan) -> list[cst.Call]:
    """Every call that runs backward for the trained model: ``x.backward()``, also through a scaler or an optimizer."""
    found: list[cst.Call] | None = plan.facts.get("backward")
    if found is not None:
        return found
    found = []
    handed: list[cst.Call] = plan.facts.setdefault("handed_backward", [])
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "backward":
            continue
        base = func.value
        if isinstance(base, cst.Call) and isinstance(base.func, cst.Name) and base.func.value == "super":
            continue
        if dotted(base) in ("torch.autograd", "autograd", "ctx"):
            continue
        if any(arg.keyword is None for arg in call.args) and plan.is_model_like(base):
            handed.append(call)  # `engine.backward(loss)`, or a method of the model that runs the loss's own
            continue
        if plan.flow.callee(call) is not None:
            continue  # a method of the script's own: the backward in it is the one
        function = plan.function_of(call)
        if is_inside_optimizer(plan.roles, function):
            continue
        if function.name in ("backward", "setup_context") and function.class_seen is not None:
            if any("Function" in b for b in function.class_seen.bases):
                continue
        found.append(call)
    plan.facts["backward"] = found
    return found


def find_steps(plan: Plan) -> list[cst.Call]:
    """Every call that steps the trained optimizer."""
    return [call for call in plan.tree.calls if stepped_optimizer(plan, call) is not None]


def scaler_of(plan: Plan, call: cst.Call) -> Node | None:
    """The gradient scaler that a backward or step call goes through, or None."""
    assert isinstance(call.func, cst.Attribute)
    base = call.func.value
    if isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value == "scale":
        if plan.roles.is_scaler(base.func.value) or _scaler_named(base.func.value):
            return base.func.value
    if call.func.attr.value == "step" and call.args and (plan.roles.is_scaler(base) or _scaler_named(base)):
        return base
    return None


def _scaler_named(node: Node) -> bool:
    text = (dotted(node) or "").lower()
    return "scaler" in text


def short(text: str) -> str:
    """Source text on one line, for a message."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def mark_twins(plan: Plan, statement: Statement) -> None:
    """An ``if amp: … else: …`` may become two equal branches: then one is enough."""
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and isinstance(outer.node.orelse, cst.Else):
            plan.edits.twins.add(outer.node)


def step_text(plan: Plan, scaler: str | None, engine: str) -> str:
    """The call that steps the engine, through the script's scaler or the one that replaces apex amp."""
    if scaler is None and plan.facts.get("amp_scaler"):
        scaler = f"{engine}.amp_scaler"
    return f"{scaler}.engine_step({engine})" if scaler is not None else f"{engine}.step()"
