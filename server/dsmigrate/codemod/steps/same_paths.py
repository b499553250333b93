"""MG622 again: other loads of the path that a resume checkpoint is read from, here or behind calls that hand it on."""

from __future__ import annotations

from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found, is_handle, same_text
from dsmigrate.codemod.steps.checkpoint_helpers import how_to_read
from dsmigrate.codemod.tree import Function, Node

Root: TypeAlias = tuple[object, ...]
_DEPTH = 5


def same_paths(plan: Plan, found: Found) -> list[cst.Call]:
    """The loads that read nothing but resume checkpoints; those that may also read something else are marked."""
    ours = {root for load in found.loads for root in roots_of(plan, load)}
    parts = {plan.part_of(plan.tree.statement(load)) for load in found.loads} | {plan.tree.parts[0]}
    others = []
    for call in plan.tree.calls:
        if call in found.loads or not call.args or not plan.imports.names(call.func) & {"torch.load"}:
            continue
        if _is_beside(plan, found, call):
            others.append(call)
            continue
        own = roots_of(plan, call)
        if not own & ours or is_handle(plan, argument(call, 0, "f"), call):
            continue
        if own <= ours and plan.part_of(plan.tree.statement(call)) in parts:
            others.append(call)
        else:
            plan.handled.add(call)
            plan.facts["keep_weights"] = True
            plan.todo("MG622", call, f"a DeepSpeed checkpoint, which is a directory, may be read here: {how_to_read(plan)}",
                      "callers hand in the path that training is resumed from")  # fmt: skip
    return others


def _is_beside(plan: Plan, found: Found, call: cst.Call) -> bool:
    """Whether a load stands in the function of a resume load, with the same text for the path."""
    for load in found.loads:
        # An option (`args.resume`) is the same path in every function.
        if load.args and (
            plan.function_of(load) is plan.function_of(call) or isinstance(call.args[0].value, cst.Attribute)
        ):
            if same_text(plan, call.args[0].value, load.args[0].value):
                return True
    return False


def roots_of(plan: Plan, load: cst.Call) -> set[Root]:
    """Where the path of a load comes from."""
    path = argument(load, 0, "f")
    return roots(plan, path, plan.function_of(load), _DEPTH) if path is not None else set()


def roots(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> set[Root]:
    """Where a path comes from: the expressions that callers hand in for a parameter, and what other names stand for."""
    place = plan.flow.place(node, function)
    if place is None:
        return {(id(function), plan.code(node))}
    bindings = plan.flow.by_place.get(place, ())
    if bindings and depth and all(b.kind == "argument" and b.index is None for b in bindings):
        return {root for b in bindings for root in roots(plan, b.value, b.function, depth - 1)}
    if depth and len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].index is None:
        if isinstance(bindings[0].value, cst.Name | cst.Attribute):
            return roots(plan, bindings[0].value, bindings[0].function, depth - 1)
    return {place}
