"""Which expressions are weights of the trained model, or parts of it, outside of the model's own methods."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.module_hooks import hooked
from dsmigrate.codemod.steps.module_weights import (
    is_own_of_loop,
    is_own_other_name,
    is_own_part,
    is_own_weight,
    speaks_of_own_model,
)
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.steps.unwrapped import is_unwrapped
from dsmigrate.codemod.tree import Function, Node

_WEIGHT = re.compile(r"weight|bias|param|token|embed|scale|gamma|beta|proto|kernel|logit|temperature", re.IGNORECASE)
_NO_WEIGHT = re.compile(r"running_|num_batches|queue|buffer|mask|ptr|(?:^|\.)grad(?:\.|$)", re.IGNORECASE)
_ALL_OF = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"})
_THROUGH = frozenset({"list", "tuple", "reversed", "sorted", "iter", "filter", "tqdm"})
_SHARES = frozenset({"view", "flatten", "detach", "t", "numpy", "get_parameter", "get_submodule"})
_TABLES = frozenset({"dict", "OrderedDict"})
_DEPTH = 6
_HOPS = 3


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
            if _is_state_dict(plan, inner.value, function):
                return True
            inner = inner.value
        elif isinstance(inner, cst.Call):
            named = named or (isinstance(inner.func, cst.Attribute) and inner.func.attr.value == "get_parameter")
            held = _shared(inner)
            if held is None:
                break
            inner = held
        else:
            break
    if not isinstance(inner, cst.Name):
        return named and is_unwrapped(plan, inner, function)
    if is_own_of_loop(plan, node, inner, function) or is_own_other_name(plan, inner, function):
        return True
    if inner is not node and (is_part(plan, inner, function) or _holds_part(plan, inner, function, _HOPS)):
        return named
    return is_of_loop(plan, inner, function) or (inner is node and is_other_name(plan, inner, function))


def _shared(call: cst.Call) -> Node | None:
    """What the result of a call is a part of, or shares its memory with: ``x.detach()``, ``getattr(x, …)``, ``x.get_parameter(…)``."""
    if dotted(call.func) == "getattr" and call.args:
        return call.args[0].value
    is_shared = isinstance(call.func, cst.Attribute) and call.func.attr.value in _SHARES
    return call.func.value if is_shared and isinstance(call.func, cst.Attribute) else None


def _is_state_dict(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """``model.state_dict()``, ``dict(model.named_parameters())``, or a variable for it: the tensors in it are the weights."""
    if depth == 0:
        return False  # `states = {k: v for k, v in states.items()}`
    if isinstance(node, cst.Name):
        return any(
            isinstance(v, cst.Call | cst.DictComp) and _is_state_dict(plan, v, where, depth - 1)
            for v, where in _given(plan, node, function)
        )
    if isinstance(node, cst.DictComp):
        return _collects(plan, node, function, None, depth)
    if isinstance(node, cst.Call) and (dotted(node.func) or "").rpartition(".")[2] in _TABLES and len(node.args) == 1:
        return goes_over(plan, node.args[0].value, function, 1, depth)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value == "state_dict" and belongs(plan, node.func.value, function)


def is_tensor(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is a tensor for sure, which ``*=`` changes where it lies; a number would be replaced."""
    if isinstance(node, cst.Subscript):
        return _is_state_dict(plan, node.value, function) or is_tensor(plan, node.value, function)
    if isinstance(node, cst.Call):
        return _shared(node) is not None
    name = node.attr.value if isinstance(node, cst.Attribute) else ""
    if not name or name in ("data", "weight", "bias"):
        return bool(name)
    made = re.compile(rf"""\.{name}\b[^=\n]*=[^=\n]*\bParameter\(|register_parameter\(\s*["']{name}["']""")
    return any(made.search(text) for text in plan.facts["texts"])


def is_other_name(plan: Plan, name: cst.Name, function: Function, *, tensors: bool = False) -> bool:
    """``w = model.module.fc.weight.data``, then ``w.clamp_(…)``; also where a function is handed it."""
    return any(
        isinstance(value, cst.Attribute | cst.Subscript | cst.Call)
        and is_weight(plan, value, where)
        and (not tensors or is_tensor(plan, value, where))
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
        if isinstance(value, cst.Name) and (
            _holds_part(plan, value, where, depth - 1) or is_of_loop(plan, value, where, depth - 1)
        ):
            return True
    return any(_hooks_part(plan, call, depth - 1) for call in hooked(plan, name, function))


def _hooks_part(plan: Plan, call: cst.Call, depth: int) -> bool:
    """Whether a hook is registered at the trained model or a part of it, or at whatever module runs."""
    where = plan.function_of(call)
    if not isinstance(call.func, cst.Attribute) or plan.imports.is_from_package(call.func, "torch"):
        return True
    held = call.func.value
    if belongs(plan, held, where, depth) or speaks_of_own_model(plan, held, where):
        return True
    return isinstance(held, cst.Name) and is_of_loop(plan, held, where, depth)


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


def is_of_loop(plan: Plan, name: cst.Name, function: Function, depth: int = _HOPS) -> bool:
    """Whether a name runs over the parameters or the modules of the trained model, also where a function is handed it."""
    asked: set[tuple[str, Function]] = plan.facts.setdefault("loops_asked_about", set())
    key = (name.value, function)
    if key in asked:
        return False  # a function that calls itself with each part
    asked.add(key)
    try:
        return _is_of_loop(plan, name, function, depth)
    finally:
        asked.discard(key)


def _is_of_loop(plan: Plan, name: cst.Name, function: Function, depth: int) -> bool:
    place = plan.flow.place(name, function)
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        if binding.kind == "for" and goes_over(plan, binding.value, binding.function, binding.index):
            return True
        if depth and binding.kind == "argument" and isinstance(binding.value, cst.Name):
            if is_of_loop(plan, binding.value, binding.function, depth - 1):
                return True
    return any(
        isinstance(target, cst.Name) and target.value == name.value and goes_over(plan, iterable, function, index)
        for loop in _loops_around(plan, name)
        for target, iterable, index in unpacked(loop.target, loop.iter)
    )


def _loops_around(plan: Plan, name: cst.Name) -> Iterator[cst.For | cst.CompFor]:
    """The loops that a name stands in, those of the comprehensions around it included."""
    for outer in plan.tree.statement(name).enclosing():
        if isinstance(outer.node, cst.For):
            yield outer.node
    node: Node | None = name
    while node is not None and not isinstance(node, cst.BaseSmallStatement):
        if isinstance(node, cst.ListComp | cst.SetComp | cst.GeneratorExp):
            yield node.for_in
        node = plan.tree.parent.get(node)


def goes_over(plan: Plan, node: Node, function: Function, index: int | None, depth: int = _DEPTH) -> bool:
    """Whether an iterable gives parameters of the trained model (as the ``index``-th element of its tuples)."""
    if depth == 0:
        return False
    if index is None and isinstance(node, cst.Attribute | cst.Subscript) and belongs(plan, node, function):
        return True  # `for layer in model.module.layers`
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return any(b.index is None and goes_over(plan, b.value, b.function, index, depth - 1) for b in bindings)
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        return _collects(plan, node, function, index, depth)
    if not isinstance(node, cst.Call):
        return False
    func = node.func
    text = dotted(func) or ""
    if text == "zip" and index is not None and index < len(node.args):
        return goes_over(plan, node.args[index].value, function, None, depth)
    if text == "enumerate" and index == 1 and node.args:
        return goes_over(plan, node.args[0].value, function, None, depth)
    if text in _THROUGH and node.args:
        return goes_over(plan, node.args[-1].value, function, index, depth)
    if not isinstance(func, cst.Attribute):
        return False
    if func.attr.value in ("values", "items"):  # model.state_dict().values(), model._modules.items()
        is_table = _is_state_dict(plan, func.value, function, depth - 1) or belongs(plan, func.value, function)
        return is_table and index == (1 if func.attr.value == "items" else None)
    if func.attr.value not in _ALL_OF:
        return False
    named = func.attr.value.startswith("named_")
    return index == (1 if named else None) and is_piece(plan, func.value, function)


def _collects(
    plan: Plan, made: cst.ListComp | cst.GeneratorExp | cst.DictComp, function: Function, index: int | None, depth: int
) -> bool:
    """``[p.data for p in model.parameters()]``: the parameters as they are, not their gradients or copies."""
    elt = made.value if isinstance(made, cst.DictComp) else made.elt
    if index is not None and isinstance(elt, cst.Tuple) and index < len(elt.elements):
        elt, index = elt.elements[index].value, None
    while isinstance(elt, cst.Attribute) and elt.attr.value in ("data", "weight", "bias"):
        elt = elt.value
    if not isinstance(elt, cst.Name):
        return False
    loop: cst.CompFor | None = made.for_in
    while loop is not None:
        for target, iterable, element in unpacked(loop.target, loop.iter):
            if isinstance(target, cst.Name) and target.value == elt.value:
                return goes_over(plan, iterable, function, element if index is None else index, depth - 1)
        loop = loop.inner_for_in
    return False


def is_piece(plan: Plan, node: Node, function: Function) -> bool:
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
        elif isinstance(inner, cst.Call) and (held := _shared(inner)) is not None:
            inner = held
        elif isinstance(inner, cst.Name):
            return _holds_part(plan, inner, function, depth)
        else:
            return is_unwrapped(plan, inner, function)
