"""MG622 again: a model that a script changes after it has loaded its checkpoint, and before the engine loads that again.

Anchors that are fitted anew, a head that begins afresh, other weights for a part: ``resume_engine`` stands where the optimizer
was restored, or behind the engine, and brings all of the saved weights and buffers back. Such places are marked.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found, origins
from dsmigrate.codemod.steps.forwards_beside import branches_apart, paths_to
from dsmigrate.codemod.steps.weight_parts import belongs
from dsmigrate.codemod.steps.weight_writes import is_written, writes
from dsmigrate.codemod.steps.written_buffers import registered
from dsmigrate.codemod.tree import Function, Node, Statement

_HALVES = frozenset({"half", "bfloat16"})


def written_on_the_way(plan: Plan, found: Found) -> None:
    """Mark what changes the model between the load of its weights and the place where the engine loads them."""
    ours = set(found.loads)
    loads = [call for call in (*found.model_loads, *found.part_loads) if set(origins(plan, call)) & ours]
    ends = list(dict.fromkeys(_end(plan, call) for call in found.optimizer_loads if set(origins(plan, call)) & ours))
    starts = [way for call in loads for way in paths_to(plan, plan.tree.statement(call))]
    stops = [way for end in ends if end is not None for way in paths_to(plan, end)]
    if not starts or not stops:
        return
    for statement in dict.fromkeys(_writes(plan, found, set(loads))):
        ways = list(paths_to(plan, statement))
        if any(_is_between(way, start, stop) for way in ways for start in starts for stop in stops):
            plan.todo("MG622", statement, "the model is changed here after its checkpoint was loaded, and resume_engine brings back what was "
                      "saved: change it again behind resume_engine, weights at ZeRO stage 0 only",
                      "engine.load_checkpoint replaces all weights and buffers of the model")  # fmt: skip


def _end(plan: Plan, call: cst.Call) -> Statement | None:
    """The statement by which ``resume_engine`` is called: that of the optimizer's load, or the one that makes the engine."""
    if plan.is_before_engine(call):
        return plan.site.anchor if plan.site is not None else None
    return plan.tree.statement(call)


def _is_between(way: tuple[Statement, ...], start: tuple[Statement, ...], stop: tuple[Statement, ...]) -> bool:
    return _is_before(start, way) and _is_before(way, stop) and not branches_apart(start, way)


def _is_before(first: tuple[Statement, ...], then: tuple[Statement, ...]) -> bool:
    """Whether the first of two statements comes before the other in the innermost function that leads to both."""
    for own in first:
        for other in then:
            if own.function is other.function:
                return own.order < other.order
    return False


def _writes(plan: Plan, found: Found, loads: set[cst.Call]) -> Iterator[Statement]:
    """Every statement that changes weights, buffers or layers of the model."""
    buffers = {name for _, name in registered(plan)}
    for call in plan.tree.calls:
        if writes(plan, call) or _begins_own(plan, call) or _is_half(plan, call) or _fills(plan, call, buffers):
            yield plan.tree.statement(call)
    for call in (*found.model_loads, *found.part_loads):
        if call not in loads:
            yield plan.tree.statement(call)
    for statement in plan.tree.statements:
        node = statement.node
        value = node.value if isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign) else None
        if value is not None and any(
            _is_changed(plan, target, value, statement, buffers) for target in assigned_to(node)
        ):
            yield statement


def _is_changed(plan: Plan, target: Node, value: Node, statement: Statement, buffers: set[str]) -> bool:
    """``m.anchors[:] = …``, ``m.scale = …`` of a buffer, and ``m.head = nn.Linear(…)``."""
    if is_written(plan, target, statement):
        return True
    inner = target.value if isinstance(target, cst.Subscript) else target
    if not isinstance(inner, cst.Attribute):
        return False
    is_layer = inner is target and _is_layer(plan, value)
    return (is_layer or inner.attr.value in buffers) and _is_of_model(plan, inner.value, statement.function)


def _is_layer(plan: Plan, value: Node) -> bool:
    """``nn.Linear(…)``, also ``nn.Linear(…).to(device)``."""
    while (
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and isinstance(value.func.value, cst.Call)
    ):
        value = value.func.value
    names = plan.imports.names(value.func) if isinstance(value, cst.Call) else ()
    return any(name.startswith("torch.nn.") and ".functional." not in name for name in names)


def _begins_own(plan: Plan, call: cst.Call) -> bool:
    """``self.head.reset_parameters()`` and ``nn.init.zeros_(self.head.weight)`` in a method of a class."""
    own, func = plan.function_of(call).self_name, call.func
    held: Node | None = None
    if isinstance(func, cst.Attribute) and func.attr.value == "reset_parameters":
        held = func.value
    elif call.args and any(name.startswith("torch.nn.init.") for name in plan.imports.names(func)):
        held = call.args[0].value
    return own is not None and held is not None and (dotted(held) or "").startswith(f"{own}.")


def _fills(plan: Plan, call: cst.Call, buffers: set[str]) -> bool:
    """``m.anchors.copy_(…)`` and its kind."""
    func = call.func
    if not isinstance(func, cst.Attribute) or not func.attr.value.endswith("_") or func.attr.value.endswith("__"):
        return False
    held = func.value.value if isinstance(func.value, cst.Subscript) else func.value
    return (
        isinstance(held, cst.Attribute)
        and held.attr.value in buffers
        and _is_of_model(plan, held.value, plan.function_of(call))
    )


def _is_half(plan: Plan, call: cst.Call) -> bool:
    """``model.half().float()``, which rounds the weights."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "float" or call.args:
        return False
    inner = func.value.func if isinstance(func.value, cst.Call) else None
    return (
        isinstance(inner, cst.Attribute)
        and inner.attr.value in _HALVES
        and isinstance(plan.tree.statement(call).node, cst.Expr)
        and belongs(plan, inner.value, plan.function_of(call))
    )


def _is_of_model(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is a layer of the model; ``a if hasattr(model, "module") else b`` is one if a choice is."""
    if belongs(plan, node, function):
        return True
    place = plan.flow.place(node, function) if isinstance(node, cst.Name) else None
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        if binding.index is None and binding.kind == "assign" and isinstance(binding.value, cst.IfExp):
            choices = (binding.value.body, binding.value.orelse)
            if any(belongs(plan, choice, binding.function) for choice in choices):
                return True
    return False
