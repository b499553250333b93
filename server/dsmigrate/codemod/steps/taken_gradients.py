"""MG413: torch.autograd.grad through the engine, whose hooks take it for a backward."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import calls_engine
from dsmigrate.codemod.steps.sites import short
from dsmigrate.codemod.tree import Node, descendants

IDEAS = (
    Idea(
        "MG413",
        "torch.autograd.grad through the engine",
        "It stops at the first step; through the module behind the engine its numbers are those of DDP.",
        "The engine's hooks on its output and on its parameters take it for a backward of their own: an error at ZeRO 0, an IndexError "
        "in the reduction at ZeRO 2. A forward of engine.module has no such hooks on its output; what engine.backward gets has to come "
        "from the engine, though.",
        "deepspeed/runtime/zero/stage_1_and_2.py, reduce_ipg_grads; run on two processes, ZeRO 0 and 2",
        Kind.TODO,
    ),
)


def taken_gradients(plan: Plan) -> None:
    """Mark every torch.autograd.grad of what the engine has computed."""
    for call in plan.tree.calls:
        if "torch.autograd.grad" not in plan.imports.names(call.func) or plan.is_before_engine(call):
            continue
        outputs = argument(call, 0, "outputs")
        forward = _forward(plan, outputs, call) if outputs is not None else None
        engine = plan.engine_in(forward) if forward is not None else None
        if forward is not None and engine is not None:
            plan.todo("MG413", call, f"torch.autograd.grad through the engine is an error: let {short(plan.code(forward))} run {engine}.module here, "
                      f"and the engine for what {engine}.backward gets alone", "the engine's hooks take it for a backward")  # fmt: skip


def _forward(plan: Plan, node: Node, call: cst.Call) -> cst.Call | None:
    """The forward of the engine that an expression comes from, as far as one function shows."""
    function = plan.function_of(call)
    queue, seen = [node], set()
    while queue:
        for sub in descendants(queue.pop()):
            if isinstance(sub, cst.Call) and calls_engine(plan, sub) and not plan.is_before_engine(sub):
                return sub
            if isinstance(sub, cst.Name) and sub.value not in seen:
                seen.add(sub.value)
                bindings = plan.flow.by_place.get(plan.flow.variable(sub.value, function), ())
                queue.extend(b.value for b in bindings if b.function is function and b.kind == "assign")
    return None
