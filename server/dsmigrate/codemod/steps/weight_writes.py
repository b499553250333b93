"""MG509: weights of the model that the script itself writes to after the engine is made."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import Binding
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.module_weights import is_own_of_loop, is_own_other_name, is_own_part, is_own_weight
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.tree import Function, Node, Statement

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
_WEIGHT = re.compile(r"weight|bias|param|token|embed|scale|gamma|beta|proto|kernel|logit|temperature", re.IGNORECASE)
_NO_WEIGHT = re.compile(r"running_|num_batches|queue|buffer|mask|ptr|(?:^|\.)grad(?:\.|$)", re.IGNORECASE)
_ALL_OF = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"})
_THROUGH = frozenset({"list", "tuple", "reversed", "sorted", "iter", "filter", "tqdm"})
_INITIALISES = re.compile(r"\breset_parameters\b|\binit\.\w+_\(|\.(?:weight|bias)(?:\.data)?\.\w+_\(|\.data\b")
_BY_NAME = re.compile(r"init|reset|normal_?\b|clip|clamp|constrain", re.IGNORECASE)
_DEPTH = 6
_HOPS = 3


def weight_writes(plan: Plan) -> None:
    """Let the config have ZeRO 0 where the script writes to the engine's weights."""
    for call in plan.tree.calls:
        if writes(plan, call):
            _needs_stage_zero(plan, plan.tree.statement(call))
    for statement in plan.tree.statements:
        if any(is_written(plan, target, statement) for target in assigned_to(statement.node)):
            _needs_stage_zero(plan, statement)


def writers(plan: Plan) -> set[Function]:
    """The functions that write to the engine's weights."""
    found: set[Function] = plan.facts.setdefault("weight_writers", set())
    return found


def _needs_stage_zero(plan: Plan, statement: Statement) -> None:
    writers(plan).add(statement.function)
    if plan.site is None or plan.is_before_engine(statement.node) or plan.edits.is_removed(statement.node):
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
    names = plan.imports.names(func)
    given = call.args[:1] if any(name.startswith("torch.nn.init.") and name.endswith("_") for name in names) else []
    given = [*given, *(arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "out")]
    if given:
        return any(is_weight(plan, arg.value, function) for arg in given)
    if "torch.nn.utils.vector_to_parameters" in names and len(call.args) > 1:
        return goes_over(plan, call.args[1].value, function, None, _DEPTH)
    if any(name.startswith("torch.nn.utils.prune.") for name in names) and call.args:
        return _is_piece(plan, call.args[0].value, function)
    if not isinstance(func, cst.Attribute):
        return False
    name = func.attr.value
    if name == "apply" and len(call.args) == 1 and _is_piece(plan, func.value, function):
        applied = plan.flow.function_named(call.args[0].value, function)
        if applied is None and not isinstance(call.args[0].value, cst.Lambda):
            return bool(_BY_NAME.search(plan.code(call.args[0].value)))
        return bool(_INITIALISES.search(plan.code(applied.node if applied is not None else call.args[0].value)))
    if name == "reset_parameters":
        return _is_piece(plan, func.value, function)
    if name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES:
        return is_weight(plan, func.value, function)
    return False


def is_written(plan: Plan, target: Node, statement: Statement) -> bool:
    """``w.data = …``, ``w.data[mask] = …``, ``w[0] = …`` and the same with ``*=``."""
    inner = target
    while isinstance(inner, cst.Subscript):
        inner = inner.value
    if isinstance(inner, cst.Attribute) and inner.attr.value == "data":
        return is_weight(plan, inner, statement.function)
    if isinstance(statement.node, cst.AugAssign) and inner is target:
        if isinstance(target, cst.Name):
            return is_own_other_name(plan, target, statement.function)
        return is_own_weight(plan, target, statement.function)
    return inner is not target and is_weight(plan, inner, statement.function)


def is_weight(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is a parameter of the trained model, or a tensor that shares its memory."""
    if is_own_weight(plan, node, function):
        return True
    text = plan.code(node)
    if _NO_WEIGHT.search(text):
        return False
    named = bool(_WEIGHT.search(text))
    inner = node
    while True:
        if isinstance(inner, cst.Attribute):
            named = named or inner.attr.value == "data"
            if inner is not node and is_part(plan, inner, function):
                return named
            inner = inner.value
        elif isinstance(inner, cst.Subscript):
            inner = inner.value
        elif isinstance(inner, cst.Call):
            if dotted(inner.func) == "getattr" and inner.args:
                inner = inner.args[0].value
            elif isinstance(inner.func, cst.Attribute) and inner.func.attr.value in ("view", "flatten", "detach", "t"):
                inner = inner.func.value
            else:
                return False
        else:
            break
    if not isinstance(inner, cst.Name):
        return False
    if is_own_of_loop(plan, node, inner, function) or is_own_other_name(plan, inner, function):
        return True
    if inner is not node and (is_part(plan, inner, function) or _holds_part(plan, inner, function, _HOPS)):
        return named
    return _is_of_loop(plan, inner, function) or (inner is node and _is_other_name(plan, inner, function))


def _is_other_name(plan: Plan, name: cst.Name, function: Function) -> bool:
    """``w = model.module.fc.weight.data``, then ``w.clamp_(…)``; also where a function is handed it."""
    return any(
        isinstance(value, cst.Attribute)
        and is_weight(plan, value, where)
        and not (where is function and is_own_weight(plan, value, where))  # `is_own_other_name` knows these better
        for value, where in _given(plan, name, function)
    )


def _holds_part(plan: Plan, name: cst.Name, function: Function, depth: int) -> bool:
    """Whether a variable or parameter gets a layer of the trained model: ``clip(model.module.fc)``."""
    if depth == 0:
        return False
    for value, where in _given(plan, name, function):
        if isinstance(value, cst.Attribute | cst.Subscript) and belongs(plan, value, where, depth - 1):
            return True
        if isinstance(value, cst.Name) and _holds_part(plan, value, where, depth - 1):
            return True
    return False


def _given(plan: Plan, name: cst.Name, function: Function) -> Iterator[tuple[Node, Function]]:
    place = plan.flow.place(name, function)
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        if binding.index is None and binding.kind in {"assign", "argument"} and binding.value is not name:
            yield binding.value, binding.function


def is_part(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the trained model; not one that this function has just made."""
    tags = plan.roles.of(node, function)
    if not any(tag[0] in "ER" and tag[1:] in plan.group for tag in tags):
        return False
    if _is_made_again(plan, node, function):
        return False
    return any(tag[0] == "E" for tag in tags) or not is_made_here(plan, node, function)


def is_made_here(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a name is a model that its function makes by itself, for whoever calls it: not the one of the engine."""
    if plan.site is None or function is plan.site.function or function in plan.upstream:
        return False
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return bool(bindings) and all(b.function is function and isinstance(b.value, cst.Call) for b in bindings)


def _is_made_again(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a name has just been given another model, behind the engine and in the same block: ``model = Net()``."""
    statement = plan.tree.statement(node)
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    before = [b for b in bindings if b.function is function and b.statement.order < statement.order]
    last = max(before, key=lambda b: b.statement.order, default=None)
    if last is None or last.index is not None or last.statement.block is not statement.block:
        return False
    if not isinstance(last.value, cst.Call) or plan.is_before_engine(last.value):
        return False
    return not any(tag[0] in "ER" for tag in plan.roles.of(last.value, function))


def _is_of_loop(plan: Plan, name: cst.Name, function: Function) -> bool:
    """Whether a name runs over the parameters or the modules of the trained model."""
    place = plan.flow.place(name, function)
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        if binding.kind == "for" and _runs_over(plan, binding):
            return True
    return any(
        isinstance(target, cst.Name)
        and target.value == name.value
        and goes_over(plan, iterable, function, index, _DEPTH)
        for outer in plan.tree.statement(name).enclosing()
        if isinstance(outer.node, cst.For)
        for target, iterable, index in unpacked(outer.node.target, outer.node.iter)
    )


def _runs_over(plan: Plan, binding: Binding) -> bool:
    return goes_over(plan, binding.value, binding.function, binding.index, _DEPTH)


def goes_over(plan: Plan, node: Node, function: Function, index: int | None, depth: int) -> bool:
    """Whether an iterable gives parameters of the trained model (as the ``index``-th element of its tuples)."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return any(b.index is None and goes_over(plan, b.value, b.function, index, depth - 1) for b in bindings)
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        return index is None and goes_over(plan, node.for_in.iter, function, None, depth - 1)
    if not isinstance(node, cst.Call):
        return False
    func = node.func
    text = dotted(func) or ""
    if text == "zip" and index is not None and index < len(node.args):
        return goes_over(plan, node.args[index].value, function, None, depth - 1)
    if text == "enumerate" and index == 1 and node.args:
        return goes_over(plan, node.args[0].value, function, None, depth - 1)
    if text in _THROUGH and node.args:
        return goes_over(plan, node.args[-1].value, function, index, depth - 1)
    if not isinstance(func, cst.Attribute):
        return False
    if func.attr.value in ("values", "items") and isinstance(func.value, cst.Call):  # model.state_dict().values()
        held = func.value.func
        if not isinstance(held, cst.Attribute) or held.attr.value != "state_dict":
            return False
        return index == (1 if func.attr.value == "items" else None) and belongs(plan, held.value, function)
    if func.attr.value not in _ALL_OF:
        return False
    named = func.attr.value.startswith("named_")
    return index == (1 if named else None) and _is_piece(plan, func.value, function)


def _is_piece(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the trained model or a part of it, also from within."""
    return belongs(plan, node, function) or is_own_part(plan, node, function)


def belongs(plan: Plan, node: Node, function: Function, depth: int = _HOPS) -> bool:
    """Whether an expression is the trained model or a part of it (``model.module.encoder``), ``depth`` names away."""
    inner = node
    while True:
        if isinstance(inner, cst.Name | cst.Attribute) and is_part(plan, inner, function):
            return True
        if isinstance(inner, cst.Attribute | cst.Subscript):
            inner = inner.value
        elif isinstance(inner, cst.Call) and dotted(inner.func) == "getattr" and inner.args:
            inner = inner.args[0].value
        else:
            return isinstance(inner, cst.Name) and _holds_part(plan, inner, function, depth)
