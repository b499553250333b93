"""MG509: weights of the model that the script itself writes to after the engine is made."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.module_hooks import is_in_a_hook
from dsmigrate.codemod.steps.module_weights import is_own_other_name, is_own_weight
from dsmigrate.codemod.steps.modules import code_of
from dsmigrate.codemod.steps.weight_parts import goes_over, is_of_loop, is_other_name, is_piece, is_tensor, is_weight
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG509",
        "Weights are written after the engine is made",
        "A clamp, a mask, a copy or an initialisation of the engine's weights keeps its effect at ZeRO 0 only.",
        "At ZeRO 1-3 the next step starts from the optimizer's own copy of the weights, and what was written is gone "
        "without a word. At ZeRO 0 the optimizer steps the weights themselves, as under DDP.",
        "engine-semantics 12",
        Kind.KEPT,
    ),
)
_NO_WRITES = frozenset({"requires_grad_", "share_memory_", "detach_", "retain_grad_", "apply_"})
_INITIALISES = re.compile(
    r"\breset_parameters\b|\binit\.\w+_\(|\.(?:weight|bias)(?:\.data)?(?:\.\w+_\(|\s*[-+*/]=)|\.data\b"
)
_RESETS = frozenset({"reset_parameters", "_reset_parameters", "init_weights", "_init_weights", "reset_weights"})
_FOREACH = re.compile(r"^torch\._foreach_\w+_$")
_FILLS = re.compile(r"^torch\.nn\.init\.(?!_|calculate_)|^(?:torch|timm)\.(?:\w+\.)*(?!clip_grad_)[a-z]\w*_$")
_BY_NAME = re.compile(r"init|reset|normal_?\b|clip|clamp|constrain", re.IGNORECASE)


def weight_writes(plan: Plan) -> None:
    """Let the config have ZeRO 0 where the script writes to the engine's weights."""
    for call in plan.tree.calls:
        if writes(plan, call):
            _needs_stage_zero(plan, plan.tree.statement(call), is_hooked=is_in_a_hook(plan, call))
    for statement in plan.tree.statements:
        if any(is_written(plan, target, statement) for target in assigned_to(statement.node)):
            _needs_stage_zero(plan, statement, is_hooked=is_in_a_hook(plan, statement.node))


def writers(plan: Plan) -> set[Function]:
    """The functions that write to the engine's weights."""
    found: set[Function] = plan.facts.setdefault("weight_writers", set())
    return found


def _needs_stage_zero(plan: Plan, statement: Statement, *, is_hooked: bool) -> None:
    writers(plan).add(statement.function)
    if plan.site is None or plan.edits.is_removed(statement.node):
        return
    if plan.is_before_engine(statement.node) and not is_hooked:
        return
    if plan.config.keys() & {"fp16", "bf16"}:
        plan.todo("MG509", statement, "weights of the model are written here, which the next step undoes",
                  "half-precision weights come from a float32 copy after every step, at every ZeRO stage")  # fmt: skip
        return
    plan.needs_stage_zero("MG509", statement, "weights of the model are written here",
                          "ZeRO 1-3 go on with the optimizer's copy, which this does not reach")  # fmt: skip


def writes(plan: Plan, call: cst.Call) -> bool:
    """``x.copy_(…)``, ``nn.init.zeros_(x)``, ``out=x``, ``vector_to_parameters(v, …)``, ``prune.remove(layer, …)``, ``model.apply(…)``."""
    func = call.func
    function = plan.function_of(call)
    if any(is_weight(plan, value, function) for value in _filled(plan, call)):
        return True
    names = plan.imports.names(func)
    if "torch.nn.utils.vector_to_parameters" in names and len(call.args) > 1:
        return goes_over(plan, call.args[1].value, function, None)
    if any(_FOREACH.match(name) for name in names) and call.args:
        return _is_list(plan, call.args[0].value, function)
    if any(name.startswith("torch.nn.utils.prune.") for name in names) and call.args:
        return is_piece(plan, call.args[0].value, function)
    if not isinstance(func, cst.Attribute):
        return False
    name = func.attr.value
    if name == "apply" and len(call.args) == 1 and _is_layer(plan, func.value, function):
        return _is_writer(plan, call.args[0].value, function)
    if name in _RESETS:
        return plan.flow.callee(call) is None and _is_layer(plan, func.value, function)
    if name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES:
        return is_weight(plan, func.value, function)
    return False


def _is_layer(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the trained model or a part of it, also as a variable of a loop over the parts."""
    return is_piece(plan, node, function) or (isinstance(node, cst.Name) and is_of_loop(plan, node, function))


def _filled(plan: Plan, call: cst.Call) -> list[Node]:
    """The arguments that a function writes to: ``zeros_(x)``, ``out=x``, ``setattr(x, "data", …)``."""
    names = plan.imports.names(call.func)
    filled: list[Node] = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "out"]
    if any(_FILLS.search(name) for name in names):
        filled += [arg.value for arg in call.args[:1]]
    elif names == {"setattr"} and len(call.args) > 1 and plan.code(call.args[1].value).strip("'\"") == "data":
        filled.append(call.args[0].value)
    return filled


def _is_list(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a list holds parameters of the trained model."""
    if isinstance(node, cst.List | cst.Tuple):
        return any(is_weight(plan, element.value, function) for element in node.elements)
    return goes_over(plan, node, function, None)


def _is_writer(plan: Plan, applied: Node, function: Function) -> bool:
    """Whether what is applied to each layer writes to weights: a function, an object of a class, or what a call makes."""
    made = applied.func if isinstance(applied, cst.Call) else applied
    if isinstance(applied, cst.Call) and dotted(made) in ("partial", "functools.partial") and applied.args:
        made = applied.args[0].value
    if isinstance(applied, cst.Lambda):
        called = [sub.func for sub in descendants(applied) if isinstance(sub, cst.Call)]
        return bool(_INITIALISES.search(plan.code(applied))) or any(
            _INITIALISES.search(plan.code(found.node))
            for func in called
            if (found := plan.flow.function_named(func, function)) is not None
        )
    found = plan.flow.function_named(made, function)
    if found is not None:
        return bool(_INITIALISES.search(plan.code(found.node)))
    cls = plan.flow.class_named(dotted(made) or "", function) if isinstance(applied, cst.Call) else None
    place = plan.flow.place(made, function)
    kinds = [cls] if cls is not None else plan.flow.kinds.get(place, []) if place is not None else []
    if any(_INITIALISES.search(code_of(plan, kind)) for kind in kinds):
        return True
    return not kinds and bool(_BY_NAME.search(plan.code(applied)))


def is_written(plan: Plan, target: Node, statement: Statement) -> bool:
    """``w.data = …``, ``w.data[mask] = …``, ``w[0] = …`` and the same with ``*=``, ``w.detach().numpy()[:] = …``."""
    function = statement.function
    if isinstance(statement.node, cst.AugAssign) and _is_stepped(plan, target, function):
        return True
    inner = target
    while isinstance(inner, cst.Subscript):
        if inner is not target and is_weight(plan, inner, function):  # `weights["head.bias"][0] = …`
            return True
        inner = inner.value
    if isinstance(inner, cst.Attribute) and inner.attr.value == "data":
        return is_weight(plan, inner, function)
    if isinstance(statement.node, cst.AugAssign) and inner is target:
        return False
    return inner is not target and is_weight(plan, inner, function)


def _is_stepped(plan: Plan, target: Node, function: Function) -> bool:
    """``p -= …``, ``layer.weight *= …``, ``weights["head.bias"] /= …``: a tensor, which keeps its memory, not a number."""
    if isinstance(target, cst.Name):
        if is_own_other_name(plan, target, function) or is_of_loop(plan, target, function):
            return True
        return is_other_name(plan, target, function, tensors=True)
    if is_own_weight(plan, target, function):
        return True
    return is_tensor(plan, target, function) and is_weight(plan, target, function)
