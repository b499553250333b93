"""MG519: parameters that a model makes in its first forward, when the engine is there already."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.module_weights import is_in_the_model
from dsmigrate.codemod.steps.modules import is_module
from dsmigrate.codemod.tree import Class, Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG519",
        "Parameters are made in the first forward",
        "A layer or parameter that forward makes is not in the optimizer; what else the engine does with it is marked.",
        "An optimizer that is made before the first forward never steps such parameters, under DDP and under DeepSpeed. But "
        "their gradients count otherwise where the norm is clipped: DDP neither averages nor clears them, the engine does both "
        "at ZeRO 0 and leaves them out at ZeRO 1-3. One that is made after a forward of the wrapped model trains each "
        "rank's own weights under DDP, and the same ones under DeepSpeed. And load_checkpoint stops at parameters that a new "
        "model lacks. A forward before the wrap makes them in time, on all sides; nothing is said then.",
        "experiment with DeepSpeed 0.19.8 on two processes; deepspeed/runtime/engine.py, buffered_allreduce_fallback",
        Kind.TODO,
    ),
)
_MAKES = re.compile(
    r"^(?:Parameter(?:List|Dict)?|Linear|Bilinear|Conv(?:Transpose)?[123]d|\w*BatchNorm(?:[123]d)?|(?:Layer|Group|RMS)Norm"
    r"|Embedding(?:Bag)?|(?:LSTM|GRU|RNN)(?:Cell)?|MultiheadAttention|Transformer(?:(?:En|De)coder(?:Layer)?)?|PReLU"
    r"|AdaptiveLogSoftmaxWithLoss)$"
)
_FROZEN = re.compile(r"requires_grad\s*=\s*False|requires_grad_\(\s*False")
_RUNS = re.compile(r"^(?:forward\w*|__call__)$")
_DEPTH = 4


def run(plan: Plan) -> None:
    """Mark each statement of a forward that makes a trained parameter, unless a forward before the engine has run it."""
    made = [statement for statement in plan.tree.statements if _makes(plan, statement)]
    if not made or any(_is_forward(plan, call) and plan.is_before_engine(call) for call in plan.tree.calls):
        return
    for statement in made:
        plan.todo("MG519", statement, "this is made in the first forward, when the engine is there: make it before deepspeed.initialize "
                  "(in __init__, or by a forward in front of the wrap)",
                  "the optimizer lacks it, its gradient counts otherwise in a clipped norm, and a checkpoint with it cannot be resumed")  # fmt: skip


def _makes(plan: Plan, statement: Statement) -> bool:
    """``self.proj = nn.Linear(…)``, ``self.register_parameter(…)`` and ``self.add_module(…)`` within a forward."""
    function = statement.function
    owner, own = function.owner, function.self_name
    if owner is None or own is None or function.name == "__init__":
        return False
    if not any(_is_trained(plan, call) for call in _made(statement, own)):
        return False
    return is_module(plan, owner) and _runs_in_forward(plan, function, _DEPTH) and is_in_the_model(plan, owner)


def _is_trained(plan: Plan, call: cst.Call) -> bool:
    """Whether a call makes a parameter, or a layer with parameters, that is not frozen at once."""
    name = (dotted(call.func) or "").rpartition(".")[2]
    return bool(_MAKES.match(name)) and not _FROZEN.search(plan.code(call))


def _made(statement: Statement, own: str) -> Iterator[cst.Call]:
    """The calls that make what a statement puts into the module as a part of it."""
    node = statement.node
    if isinstance(node, cst.Assign | cst.AnnAssign) and node.value is not None:
        if any(isinstance(target, cst.Attribute) and dotted(target.value) == own for target in assigned_to(node)):
            yield from _calls(node.value)
    elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        if dotted(node.value.func) in (f"{own}.register_parameter", f"{own}.add_module", f"{own}.register_module"):
            for arg in node.value.args[1:]:
                yield from _calls(arg.value)


def _calls(value: Node) -> Iterator[cst.Call]:
    """The calls that make a value: not those in their arguments, such as a function that is handed a layer."""
    while (
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and isinstance(value.func.value, cst.Call)
    ):
        value = value.func.value  # `nn.Linear(…).to(x.device)`
    if isinstance(value, cst.Call):
        if (dotted(value.func) or "").rpartition(".")[2] in ("Sequential", "ModuleList", "ModuleDict"):
            yield from (sub for arg in value.args for sub in descendants(arg.value) if isinstance(sub, cst.Call))
        else:
            yield value


def _runs_in_forward(plan: Plan, function: Function, depth: int) -> bool:
    """Whether a method is a forward, or one that a forward calls and no beginning does."""
    if _RUNS.match(function.name):
        return True
    callers = {plan.function_of(call) for call in plan.flow.callers.get(function, ())} - {function}
    if depth == 0 or any(caller.name == "__init__" for caller in callers):
        return False
    return any(_is_of(plan, caller, function.owner) and _runs_in_forward(plan, caller, depth - 1) for caller in callers)


def _is_of(plan: Plan, caller: Function, owner: Class | None) -> bool:
    return caller.owner is not None and owner is not None and plan.flow.family(caller.owner) == plan.flow.family(owner)


def _is_forward(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the model as a whole: ``model(x)``."""
    return any(tag[0] in "ER" for tag in plan.roles.of(call.func, plan.function_of(call)))
