"""Whether what a call makes or casts is a part of the trained model: handed to its constructor, or kept in an attribute."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.half import makes_model
from dsmigrate.codemod.tree import Node

LOADERS = frozenset({"from_pretrained", "from_config", "_from_config"})
_CASTS = frozenset({"to", "type", "half", "bfloat16"})
_HOLDERS = frozenset({"Sequential", "ModuleList", "Parameter"})


def is_part_of_model(plan: Plan, call: cst.Call) -> bool:
    """``self.body = Body.from_pretrained(…)`` in the model's class, ``Net(body)``, or ``model.body.to(…)`` of its own."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in _CASTS:
        if not isinstance(func.value, cst.Call):
            return _casts_attribute(plan, call, func.value)
    elif not is_made_with_dtype(plan, call) and not (isinstance(func, cst.Attribute) and func.attr.value in LOADERS):
        return False
    node = _whole(plan, call)
    places = {binding.place for binding in plan.flow.bindings if binding.value is node and binding.index is None}
    return bool(places & _attributes(plan)) or _is_handed_over(plan, node, places)


def is_made_with_dtype(plan: Plan, call: cst.Call) -> bool:
    """``nn.Linear(8, 8, dtype=kind)``, or ``nn.Parameter(torch.zeros(8, dtype=kind))``: a call of a class or in a parameter."""
    if not any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in call.args):
        return False
    return _last(call)[:1].isupper() or _around(plan, call) is not None


def _last(call: cst.Call) -> str:
    return (dotted(call.func) or "").rpartition(".")[2]


def _around(plan: Plan, node: Node) -> Node | None:
    """The ``Sequential``, ``ModuleList`` or ``Parameter`` whose argument a value is, if it is one."""
    above = plan.tree.parent.get(node)
    while isinstance(above, cst.Arg | cst.Element | cst.List | cst.Tuple):
        above = plan.tree.parent.get(above)
    return above if isinstance(above, cst.Call) and _last(above) in _HOLDERS else None


def _whole(plan: Plan, call: cst.Call) -> Node:
    """The expression around a call that still has its value: ``.cuda()``, ``.eval()`` behind it, ``Sequential`` around it."""
    node: Node = call
    while True:
        holder = _around(plan, node)
        if holder is not None:
            node = holder
            continue
        attribute = plan.tree.parent.get(node)
        above = plan.tree.parent.get(attribute) if attribute is not None else None
        passes = isinstance(attribute, cst.Attribute) and attribute.attr.value in PASS_METHODS
        if not passes or not isinstance(above, cst.Call):
            return node
        if isinstance(attribute, cst.Attribute) and attribute.attr.value in ("float", "double"):
            return attribute  # full precision again: no value of a variable
        node = above


def _casts_attribute(plan: Plan, call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """``model.body.half()`` as a statement, or ``self.body.half()`` in the constructor of the model."""
    if not isinstance(plan.tree.parent.get(call), cst.Expr) or not isinstance(receiver, cst.Attribute):
        return False
    function = plan.function_of(call)
    if function.name == "__init__" and plan.flow.place(receiver, function) in _attributes(plan):
        return True
    base: cst.BaseExpression = receiver.value
    while not plan.is_ours(base):
        if not isinstance(base, cst.Attribute):
            return False
        base = base.value
    return True


def _attributes(plan: Plan) -> set[Place]:
    """The attributes of the trained model and of its parts, and the variables that they are set from."""
    families = _families(plan)
    found: set[Place] = set()
    while True:
        before = len(found)
        for binding in plan.flow.bindings:
            place = binding.place
            if place[0] == "a" and place[1] in families and binding.function.name == "__init__":
                found.add(place)
                families |= {plan.flow.family(cls) for cls in plan.flow.kinds.get(place, ())}
            if place in found and binding.index is None:
                source = plan.flow.place(binding.value, binding.function)
                if source is not None:
                    found.add(source)
        if len(found) == before:
            return found


def _families(plan: Plan) -> set[str]:
    """The classes of the tree that the trained model may be of, by the key of their topmost base."""
    ours = {f"R{member}" for member in plan.group}
    models = [place for place, roles in plan.roles.env.items() if roles & ours]
    found = {plan.flow.family(cls) for place in models for cls in plan.flow.kinds.get(place, ())}
    made = [(binding.value, binding.function) for binding in plan.flow.bindings if binding.place in models]
    for node, function in (*made, *((wrap.model, wrap.function) for wrap in plan.wraps)):
        inner: Node | None = node
        while (
            isinstance(inner, cst.Call)
            and isinstance(inner.func, cst.Attribute)
            and inner.func.attr.value in PASS_METHODS
        ):
            inner = inner.func.value
        cls = plan.flow.made_class(inner, function) if isinstance(inner, cst.Call) else None
        if cls is not None:
            found.add(plan.flow.family(cls))
    return found


def _is_handed_over(plan: Plan, node: Node, places: set[Place]) -> bool:
    """Whether a value, or a variable that holds it, is an argument of the call that makes the trained model."""
    for call in plan.tree.calls:
        function = plan.function_of(call)
        for arg in call.args:
            is_it = arg.value is node or (bool(places) and plan.flow.place(arg.value, function) in places)
            if is_it and dotted(call.func) is not None and makes_model(plan, call):
                return True
    return False
