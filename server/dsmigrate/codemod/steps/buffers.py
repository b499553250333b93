"""Whether a model may hold buffers: what the script itself does not show may."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, semantic_children

_DEPTH = 5
# Packages that make no layers with buffers, but for what is named below.
_WITHOUT = frozenset({"transformers", "peft", "accelerate", "diffusers"})  # of models without BatchNorm
_PLAIN = frozenset(
    {"torch", "apex", "math", "copy", "functools", "itertools", "collections", "numpy", "np", "os", "random"}
)


def has_batch_norm(plan: Plan) -> bool:
    """BatchNorm in this file, or a model made elsewhere that may have it."""
    found: bool | None = plan.facts.get("batch_norm")
    if found is None:
        names = [dotted(call.func) or "" for call in plan.tree.calls]
        named = any("BatchNorm" in name or "resnet" in name.lower() for name in names)
        found = named or not _model_is_here(plan) or _model_is_elsewhere(plan)
        plan.facts["batch_norm"] = found
    return found


def _model_is_here(plan: Plan) -> bool:
    """Whether the layers of the model can be seen in this file: a Module subclass, or layers of torch.nn put together."""
    if any(base.rpartition(".")[2] == "Module" for cls in plan.tree.classes.values() for base in cls.bases):
        return True
    for binding in plan.flow.bindings:
        if isinstance(binding.value, cst.Call) and plan.roles.env.get(binding.place, set()) & {
            f"R{k}" for k in plan.group
        }:
            names = plan.imports.names(binding.value.func)
            if any(
                name.startswith("torch.nn.") and "Parallel" not in name and "SyncBatchNorm" not in name
                for name in names
            ):
                return True
    return False


def _model_is_elsewhere(plan: Plan) -> bool:
    """Whether the model itself is made by a library of layers, whatever other layers are seen here."""
    ours = {f"R{member}" for member in plan.group}
    return any(
        binding.index is None
        and plan.roles.env.get(binding.place, set()) & ours
        and _is_made_elsewhere(plan, binding.value, binding.function, 2)
        for binding in plan.flow.bindings
    )


def _is_made_elsewhere(plan: Plan, value: Node, function: Function, depth: int) -> bool:
    """Whether a value, or a layer that ``nn.Sequential`` gets, is a call into a library that makes models."""
    while (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and isinstance(value.func.value, cst.Call | cst.Subscript)
    ):
        value = value.func.value
    if not isinstance(value, cst.Call) or plan.flow.callee(value) is not None:
        return False
    name = dotted(value.func)
    if name is None:
        return isinstance(value.func, cst.Subscript)
    if not plan.imports.meanings(name.partition(".")[0], function) or plan.flow.class_named(name, function) is not None:
        return False
    names = plan.imports.names(value.func)
    if any(full.partition(".")[0] not in _PLAIN | _WITHOUT or full.startswith("torch.hub") for full in names):
        return True
    places = [plan.flow.place(arg.value, function) for arg in value.args if isinstance(arg.value, cst.Name)]
    parts = [
        b for place in places if place is not None for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"
    ]
    return depth > 0 and any(_is_made_elsewhere(plan, b.value, b.function, depth - 1) for b in parts)


def may_have_buffers(plan: Plan) -> bool:
    """Whether the model may hold buffers: registered here, in a BatchNorm, or in a part that another module makes."""
    if has_batch_norm(plan):
        return True
    if any((dotted(call.func) or "").endswith("register_buffer") for call in plan.tree.calls):
        return True
    return _has_foreign_part(plan)


def _has_foreign_part(plan: Plan) -> bool:
    """Whether a layer, a base class or the model itself comes from a module that is not part of the conversion."""
    for cls in plan.tree.classes.values():
        if "forward" not in cls.methods:
            continue
        if any(_is_foreign_base(plan, base, cls.scope) for base in cls.bases):
            return True
        for method in cls.methods.values():
            for statement in method.statements:
                node = statement.node
                if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute):
                    if _is_foreign(plan, node.value, method, _DEPTH):
                        return True
    if any(_is_foreign(plan, arg.value, w.function, _DEPTH) for w in plan.wraps for arg in w.call.args[:1]):
        return True
    ours = {f"R{member}" for member in plan.group}
    return any(
        plan.roles.env.get(binding.place, set()) & ours and _is_foreign(plan, binding.value, binding.function, _DEPTH)
        for binding in plan.flow.bindings
    )


def _is_foreign_base(plan: Plan, base: str, scope: Function) -> bool:
    root = base.partition(".")[0]
    meanings = plan.imports.meanings(root, scope)
    return bool(meanings) and not any(name.partition(".")[0] == "torch" for name in meanings)


def _is_foreign(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether a value is made by a call into a module that cannot be seen, be it inside of a container of layers."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return any(_is_foreign(plan, b.value, b.function, depth - 1) for b in bindings if b.kind == "assign")
    if not isinstance(node, cst.Call):
        return any(_is_foreign(plan, child, function, depth) for child in semantic_children(node))
    return _calls_foreign(plan, node, function, depth)


def _calls_foreign(plan: Plan, call: cst.Call, function: Function, depth: int) -> bool:
    name = dotted(call.func)
    if name is not None and plan.flow.class_named(name, function) is not None:
        return False
    callee = plan.flow.callee(call)
    if callee is not None:
        returned = plan.flow.by_place.get(plan.flow.returned(callee), ())
        return any(_is_foreign(plan, b.value, b.function, depth - 1) for b in returned)
    if name is None:  # `models.__dict__[name](…)`, `make(…)(…)`, `Net(…).cuda()`
        inner = call.func.value if isinstance(call.func, cst.Attribute | cst.Subscript) else None
        return isinstance(call.func, cst.Subscript) or (inner is not None and _is_foreign(plan, inner, function, depth))
    meanings = plan.imports.meanings(name.partition(".")[0], function)
    if not meanings:
        base = call.func.value if isinstance(call.func, cst.Attribute) else None
        return base is not None and _is_foreign(plan, base, function, depth - 1)
    names = plan.imports.names(call.func)
    if any(full.partition(".")[0] not in _PLAIN or full.startswith("torch.hub") for full in names):
        return True
    return any(_is_foreign(plan, arg.value, function, depth) for arg in call.args)
