"""MG506 again: files of a part of the model, and of parameters themselves.

ZeRO 1 and 2 note their process group on every parameter, which ``pickle`` cannot store: no part of the module and no
parameter goes into a file as it is, while a copy has nothing of it. ZeRO 3 partitions them, and a copy fails as well. At
ZeRO 0 parts carry nothing of the engine. What ``detach()``, ``.data`` or ``state_dict()`` give was never a parameter.
"""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.checkpoint_facts import PARTITIONED
from dsmigrate.codemod.steps.copies import SAVERS, given_to, moved, saved
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.steps.weight_parts import belongs, goes_over
from dsmigrate.codemod.tree import Function, Node, Statement

_SETTING = re.compile(
    r"^(?:\w*(?:config|cfg|args|params_dict|vocab\w*|tokenizer|classes|labels|names|history|version|meta\w*|dim|size|device"
    r"|dtype|steps?|epochs?)|training|module|state_dict)$"
)
_DEPTH = 4


def parts(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """Save a copy where a part of the model or a parameter goes into a file; mark it at ZeRO 3."""
    if plan.zero_stage == 0 or not plan.imports.names(call.func) & SAVERS:
        return
    for holder, value in saved(plan, argument(call, 0, "obj"), statement):
        function = plan.function_of(value)
        piece = moved(value)
        if holder in plan.edits.expressions or piece in plan.edits.expressions:
            continue
        if plan.is_before_engine(call) or not _is_piece(plan, piece, function, _DEPTH):
            continue
        if plan.zero_stage == PARTITIONED:
            plan.todo("MG705", holder, f"{plan.code(piece)} cannot be copied or pickled at ZeRO stage 3: save gathered weights instead",
                      "its parameters are partitioned")  # fmt: skip
            continue
        plan.need("copy")
        plan.edits.replace(piece, given_to("copy.deepcopy"))
        plan.converted("MG506", plan.tree.statement(holder), f"a copy of {plan.code(piece)} goes into the file",
                       "at ZeRO 1 and 2 a process group hangs on every parameter, which cannot be pickled")  # fmt: skip


def _is_piece(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether a value is a part of the trained model or holds its parameters; not the model, which ``copies`` sees to."""
    if isinstance(node, cst.ListComp | cst.DictComp):
        return _collects(plan, node, function)
    if isinstance(node, cst.Call):
        return _is_called_piece(plan, node, function, depth)
    if isinstance(node, cst.Name) and not plan.is_ours(node) and depth:
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return any(
            b.index is None and b.kind == "assign" and _is_piece(plan, b.value, b.function, depth - 1) for b in bindings
        )
    if not isinstance(node, cst.Attribute | cst.Subscript) or plan.is_ours(node):
        return False
    inner: Node = node
    while isinstance(inner, cst.Attribute | cst.Subscript):
        if isinstance(inner, cst.Attribute) and (
            _SETTING.match(inner.attr.value) or inner.attr.value in ("data", "grad")
        ):
            return inner is not node and inner.attr.value == "module" and belongs(plan, node, function)
        inner = inner.value
    return belongs(plan, node, function)


def _is_called_piece(plan: Plan, node: cst.Call, function: Function, depth: int) -> bool:
    """``model.module.encoder.eval()``, ``getattr(model.module, name)``, ``list(model.parameters())``."""
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value in PASS_METHODS:
        return _is_piece(plan, func.value, function, depth)
    text = dotted(func)
    if text == "getattr" and len(node.args) >= 2:
        return '"module"' not in plan.code(node.args[1]) and belongs(plan, node, function)
    if text in ("list", "tuple") and len(node.args) == 1:
        return goes_over(plan, node.args[0].value, function, None, depth)
    return text == "dict" and len(node.args) == 1 and goes_over(plan, node.args[0].value, function, 1, depth)


def _collects(plan: Plan, node: cst.ListComp | cst.DictComp, function: Function) -> bool:
    """``{n: p for n, p in model.named_parameters()}``: parameters as they are, not what is made of them."""
    value = node.value if isinstance(node, cst.DictComp) else node.elt
    if not isinstance(value, cst.Name):
        return False
    return any(
        isinstance(target, cst.Name)
        and target.value == value.value
        and goes_over(plan, iterable, function, index, _DEPTH)
        for target, iterable, index in unpacked(node.for_in.target, node.for_in.iter)
    )
