"""MG627 again: optimizer state that is saved or loaded by way of what holds the optimizer."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.holders import held_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import find
from dsmigrate.codemod.steps.contained import may_hold_optimizer
from dsmigrate.codemod.tree import Function, Node

_STATE = frozenset({"state_dict", "load_state_dict"})


def contained_state(plan: Plan) -> None:
    """Choose ZeRO stage 0, where the state is whole, for ``{k: v.state_dict() for k, v in parts.items()}`` and the like.

    Where a save that names the optimizer becomes a checkpoint of the engine, such a load is for the person instead.
    """
    marked: set[Function] = set()
    for call in plan.tree.calls:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _STATE:
            continue
        base, function = call.func.value, plan.function_of(call)
        if _is_of_holder(plan, base, function) and not find(plan).saves and not {"fp16", "bf16"} & plan.config.keys():
            plan.handled.update([call] if call.func.attr.value == "state_dict" else [])
            plan.needs_stage_zero("MG627", call, f"the state of {plan.code(base)} is part of what an object of {_owner(function)} saves and loads",
                                  "at ZeRO 1-3 it holds this rank's part only, and every rank would load rank 0's")  # fmt: skip
            continue
        if plan.tags(base) or _is_of_models(plan, base) or not may_hold_optimizer(plan, base, function):
            continue
        if call.func.attr.value == "load_state_dict" and find(plan).saves:
            if function not in marked:
                plan.todo("MG626", call, f"{plan.code(base)} may be the optimizer here: load its state with engine.load_checkpoint, as a checkpoint is a directory now",
                          "a place that saves it was converted, as it names the optimizer")  # fmt: skip
            marked.add(function)
        elif {"fp16", "bf16"} & plan.config.keys():
            plan.todo("MG627", call, f"{plan.code(base)} may be the optimizer here, which holds this rank's part of its state only",
                      "use engine.save_checkpoint and load_checkpoint for state that has to come back")  # fmt: skip
        else:
            plan.needs_stage_zero("MG627", call, f"{plan.code(base)} may be the optimizer here, whose state is saved or loaded",
                                  "at ZeRO 1-3 it holds this rank's part only, and every rank would load rank 0's")  # fmt: skip


def _is_of_holder(plan: Plan, base: Node, function: Function) -> bool:
    """Whether a method of an object that steps the optimizer (``NoamOpt``) speaks of its state, for somebody who calls it."""
    cls = function.class_seen
    if cls is None or held_name(plan.flow, cls) is None or not plan.roles.is_optimizer(base):
        return False
    return bool(plan.flow.callers.get(function))


def _owner(function: Function) -> str:
    return function.class_seen.name if function.class_seen is not None else function.name


def _is_of_models(plan: Plan, node: Node) -> bool:
    """Whether a test around the call lets modules alone through: ``isinstance(value, nn.Module)``."""
    if not isinstance(node, cst.Name):
        return False
    is_module = re.compile(rf"isinstance\(\s*{node.value}\s*,(?![^)]*ptim)[^)]*Module")
    statement = plan.tree.statement(node)
    tests = [outer.node.test for outer in statement.enclosing() if isinstance(outer.node, cst.If)]
    tests += [test.test for outer in plan.tree.ancestors(node)
              if isinstance(outer, cst.ListComp | cst.DictComp | cst.GeneratorExp) for test in outer.for_in.ifs]  # fmt: skip
    return any(is_module.search(plan.code(test)) for test in tests)
