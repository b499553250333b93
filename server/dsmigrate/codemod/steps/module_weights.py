"""MG509 within a model: weights that a module's own methods write while it trains."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.frozen_parts import is_frozen
from dsmigrate.codemod.steps.modules import has_parameter, is_method_of_a_module, is_module, related, runs_later
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.tree import Class, Function, Node, Statement, descendants

_SHARES = frozenset({"view", "view_as", "flatten", "detach", "t"})
_IS_AVERAGE = re.compile(
    r"(?<![a-z])ema(?![a-z])|Ema(?![a-z])|EMA|[Ee]xponential|[Aa]verag|(?<![a-z])[Ss]wa(?![a-z])|SWA|[Ss]hadow"
)


def is_own_weight(plan: Plan, node: Node, function: Function) -> bool:
    """``self.temperature``, ``self.head.weight`` or ``self.scales[i]`` in a method of a module that runs while it trains.

    A parameter counts if the class, or one of its bases, makes it; one of a layer, by the name of the layer's
    parameter. What the class itself freezes has no copy in the optimizer.
    """
    cls = function.owner
    path = _path(node, function)
    if cls is None or not path or not is_method_of_a_module(plan, function) or not runs_later(plan, function):
        return False
    if is_frozen(plan, cls, function.self_name or "self", path) or _is_made_here(plan, node, function):
        return False
    if len(path) == 1:
        return has_parameter(plan, cls, path[0])
    return path[-1] in ("weight", "bias") or any(
        has_parameter(plan, part, path[-1]) for part in _held(plan, node, function)
    )


def _is_made_here(plan: Plan, node: Node, function: Function) -> bool:
    """Whether the part that is meant is made by the very method, too late for the optimizer to hold it."""
    while not (isinstance(node, cst.Attribute) and dotted(node.value) == function.self_name):
        node = node.func if isinstance(node, cst.Call) else node.value  # type: ignore[attr-defined]
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    made = [binding for binding in bindings if binding.kind == "assign"]
    return bool(made) and all(binding.function is function and isinstance(binding.value, cst.Call) for binding in made)


def is_own_part(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the module itself, or a part of it, in a method that runs while it trains."""
    cls = function.owner
    path = _path(node, function)
    if cls is None or path is None or not is_method_of_a_module(plan, function) or not runs_later(plan, function):
        return False
    return not is_frozen(plan, cls, function.self_name or "self", path) and is_in_the_model(plan, cls)


def speaks_of_own_model(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a method of a module, be it ``__init__``, speaks of the module or a part: also by a loop over its parts."""
    cls = function.owner
    if cls is None or not is_module(plan, cls) or not is_in_the_model(plan, cls):
        return False
    path = _path(node, function)
    if path is not None:
        return not is_frozen(plan, cls, function.self_name or "self", path)
    return isinstance(node, cst.Name) and any(
        isinstance(target, cst.Name) and target.value == node.value and _starts_at_self(iterable, function)
        for outer in plan.tree.statement(node).enclosing()
        if isinstance(outer.node, cst.For)
        for target, iterable, _ in unpacked(outer.node.target, outer.node.iter)
    )


def _starts_at_self(node: Node, function: Function) -> bool:
    return any(isinstance(sub, cst.Name) and sub.value == function.self_name for sub in descendants(node))


def is_within(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression of a model's method is the model, a part, or a variable of a loop over parts or parameters."""
    owner = function.owner
    if owner is None or isinstance(node, cst.Call) or not _is_within(plan, node, function):
        return False
    return not _is_made_anew(plan, node, function) and is_in_the_model(plan, owner)


def _is_made_anew(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an attribute is a tensor of the moment, which a method that runs while it trains puts there."""
    place = plan.flow.place(node, function) if isinstance(node, cst.Attribute) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(binding.kind == "assign" and runs_later(plan, binding.function) for binding in bindings)


def _is_within(plan: Plan, node: Node, function: Function) -> bool:
    if isinstance(node, cst.List | cst.Tuple):
        return any(_is_within(plan, element.value, function) for element in node.elements)
    if isinstance(node, cst.Call):
        return _is_within(plan, node.args[-1].value if node.args else node.func, function)
    if _path(node, function) is not None:
        return True
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    for outer in plan.tree.statement(node).enclosing() if isinstance(node, cst.Name) else ():
        for target, iterable, _ in (
            unpacked(outer.node.target, outer.node.iter) if isinstance(outer.node, cst.For) else ()
        ):
            if isinstance(target, cst.Name) and dotted(target) == dotted(node):
                return _is_within(plan, iterable, function)
    return False


def is_own_of_loop(plan: Plan, node: Node, name: cst.Name, function: Function) -> bool:
    """``layer.weight`` in ``for layer in self.layers``, and ``w`` in ``for w in self.scales``."""
    is_of_layer = isinstance(node, cst.Attribute) and bool(re.search(r"\.(?:weight|bias)(?:\.data)?$", plan.code(node)))
    for outer in plan.tree.statement(name).enclosing():
        if not isinstance(outer.node, cst.For):
            continue
        for target, iterable, _ in unpacked(outer.node.target, outer.node.iter):
            if isinstance(target, cst.Name) and target.value == name.value:
                path = _path(iterable, function)
                if path and is_own_part(plan, iterable, function):
                    return is_of_layer or is_own_weight(plan, iterable, function)
    return False


def is_own_other_name(plan: Plan, name: cst.Name, function: Function) -> bool:
    """``w = self.weight``, then ``w.data.clamp_(…)``: what the variable was given last is a weight."""
    statement = plan.tree.statement(name)
    place = plan.flow.place(name, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    before = [b for b in bindings if b.function is function and b.statement.order < statement.order]
    last = max(before, key=lambda b: b.statement.order, default=None)
    if last is None or last.kind != "assign" or last.index is not None:
        return False
    return isinstance(last.value, cst.Attribute | cst.Subscript) and is_own_weight(plan, last.value, function)


def _path(node: Node, function: Function) -> list[str] | None:
    """The names from ``self`` to a part: of ``self.a[0].b.data`` they are a, b; None for anything else."""
    found: list[str] = []
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Attribute):
            if node.attr.value == "grad":
                return None
            if node.attr.value != "data":
                found.insert(0, node.attr.value)
            node = node.value
        elif isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _SHARES:
            node = node.func.value
        else:
            return None
    return found if node.value == function.self_name else None


def _held(plan: Plan, node: Node, function: Function) -> list[Class]:
    """The classes of the object whose attribute is meant: of ``self.block`` in ``self.block.scale.data``."""
    while isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
        node = node.value
    place = plan.flow.place(node.value, function) if isinstance(node, cst.Attribute) else None
    return plan.flow.kinds.get(place, []) if place is not None else []


def is_in_the_model(plan: Plan, cls: Class) -> bool:
    """Whether objects of a module's class may be the trained model or parts of it: not averages of it, nor others."""
    known: dict[Class, bool] = plan.facts.setdefault("classes_in_the_model", {})
    if cls not in known:
        kinds = related(plan, cls)
        makers = [call for call in plan.tree.calls if plan.flow.made_class(call, plan.function_of(call)) in kinds]
        made = not makers or any(_makes_a_part(plan, plan.tree.statement(call)) for call in makers)
        known[cls] = made and not _IS_AVERAGE.search(cls.name)
    return known[cls]


def _makes_a_part(plan: Plan, statement: Statement) -> bool:
    """Whether what a statement makes goes into a module, or becomes the trained model."""
    owner = statement.function.owner
    if (owner is not None and is_module(plan, owner)) or any(wrap.statement is statement for wrap in plan.wraps):
        return True
    bindings = [binding for binding in plan.flow.bindings if binding.statement is statement]
    if not bindings or not all(isinstance(b.value, cst.Call | cst.Name | cst.Attribute) for b in bindings):
        return True
    return any(b.kind == "return" or tag[0] in "ER" for b in bindings for tag in plan.roles.env.get(b.place, {"-"}))
