"""Which roles the value of an expression may have, given those of the places it reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.makers import is_amp_initialize, is_scheduler_call
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.role_names import (
    AUTOCAST_NAMES,
    EMA_WORD,
    PASS_CALLS,
    PASS_METHODS,
    SCALER_NAMES,
    qualifies,
)
from dsmigrate.codemod.tree import Function, Node

if TYPE_CHECKING:
    from dsmigrate.codemod.roles import Roles


def through(roles: Roles, node: Node) -> Node:
    """The model inside ``model.to(device)``, ``torch.compile(model)``, ``SyncBatchNorm.convert…(model)`` and such."""
    while isinstance(node, cst.Call):
        func = node.func
        if (
            isinstance(func, cst.Attribute)
            and func.attr.value in PASS_METHODS
            and not _is_module_name(roles, func.value)
        ):
            node = func.value
            continue
        text = dotted(func)
        if text is not None and node.args and PASS_CALLS.search(text) and roles.flow.callee(node) is None:
            node = node.args[0].value
            continue
        break
    return node


def _is_module_name(roles: Roles, node: Node) -> bool:
    text = dotted(node)
    return text is not None and bool(
        roles.flow.imports.meanings(text.partition(".")[0], roles.flow.tree.statement(node).function)
    )


def evaluate(roles: Roles, node: Node, function: Function) -> set[str]:
    """The role tags that the value of an expression may have in a function."""
    flow = roles.flow
    if isinstance(node, cst.Name):
        return set(roles.env.get(flow.variable(node.value, function), ()))
    if isinstance(node, cst.Attribute):
        place = flow.place(node, function)
        tags = set(roles.env.get(place, ())) if place is not None else set()
        if node.attr.value in ("module", "_orig_mod"):
            inner = evaluate(roles, node.value, function)
            tags |= {"R" + tag[1:] for tag in inner if tag[0] in "ER"}
        return tags
    if isinstance(node, cst.IfExp):
        return evaluate(roles, node.body, function) | evaluate(roles, node.orelse, function)
    if isinstance(node, cst.BooleanOperation):
        return evaluate(roles, node.left, function) | evaluate(roles, node.right, function)
    if isinstance(node, cst.NamedExpr):
        return evaluate(roles, node.value, function)
    if isinstance(node, cst.Subscript):
        place = flow.place(node, function)
        return set(roles.env.get(place, ())) if place is not None else set()
    if isinstance(node, cst.Call):
        return _of_call(roles, node, function)
    return set()


def _of_call(roles: Roles, node: cst.Call, function: Function) -> set[str]:
    flow, imports = roles.flow, roles.flow.imports
    for wrap in roles.wraps:
        if wrap.call is node:
            return {f"E{wrap.index}"}
    inner = through(roles, node)
    if inner is not node:
        return evaluate(roles, inner, function)
    for site in roles.optimizers:
        if site.node is node:
            return {f"O{site.index}"}
    if qualifies(imports, node.func, SCALER_NAMES):
        return {"G"}
    if qualifies(imports, node.func, AUTOCAST_NAMES):
        return {"C"}
    callee = flow.callee(node)
    if callee is not None:
        if callee.name == "__init__":
            return set()
        return {tag for each in flow.callees(node) for tag in _given(roles, each, flow.returned(each))}
    text = dotted(node.func) or ""
    if text == "getattr" and len(node.args) >= 2 and isinstance(node.args[1].value, cst.SimpleString):
        if node.args[1].value.evaluated_value == "module":
            tags = evaluate(roles, node.args[0].value, function)
            return {"R" + tag[1:] for tag in tags if tag[0] in "ER"}
        return set()
    if is_scheduler_call(roles, node):
        return {"S"}
    if EMA_WORD.search(text) or text.endswith("deepcopy"):
        if any(tag[0] in "ER" for arg in node.args for tag in evaluate(roles, arg.value, function)):
            return {"N"}
        return set()
    last = text.rpartition(".")[2]
    if re.search(r"unwrap|de_parallel|get_raw|strip_ddp|without_ddp|unparallel", last):
        tags = {tag for arg in node.args[:1] for tag in evaluate(roles, arg.value, function)}
        return {"R" + tag[1:] for tag in tags if tag[0] in "ER"}
    return set()


def _given(roles: Roles, callee: Function, place: Place) -> set[str]:
    """What a call of a function gives: a maker of several models makes each of them for one wrap only."""
    tags = set(roles.env.get(place, ()))
    if len(roles.flow.callers.get(callee, ())) > 1:
        tags -= roles.came_back.get(place, set())
    return tags


def evaluate_element(roles: Roles, node: Node, index: int, function: Function) -> set[str]:
    """The role tags of one element of an expression that is unpacked."""
    flow = roles.flow
    if isinstance(node, cst.Call):
        for site in roles.optimizers:
            if site.node is node:
                # The whole call was seeded for one element of its tuple: the binding of that element has the tag.
                return set()
        if is_amp_initialize(roles, node):
            value = argument(node, index, ("models", "optimizers")[index] if index < 2 else None)
            return evaluate(roles, value, function) if value is not None else set()
        callee = flow.callee(node)
        if callee is not None:
            return {tag for each in flow.callees(node) for tag in _given(roles, each, flow.returned(each, index))}
        if index == 1 and is_scheduler_call(roles, node):
            return {"S"}
    if isinstance(node, cst.IfExp):
        return evaluate_element(roles, node.body, index, function) | evaluate_element(
            roles, node.orelse, index, function
        )
    return set()
