"""MG623: functions of the project that load a checkpoint's file, which is a directory now."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement

LOADERS = frozenset({"torch.load", "torch.serialization.load"})


def read_as_file(plan: Plan, call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a function of the project gets a path by this argument and loads it by a ``torch.load`` that stays."""
    for function in plan.flow.callees(call):
        name = plan.flow.parameter_of(call, function, arg)
        if name is None:
            continue
        places = held_by(plan, {plan.flow.variable(name, function): None}, arguments=True)
        for load in plan.tree.calls:
            if load in plan.handled or not plan.imports.names(load.func) & LOADERS:
                continue
            path = argument(load, 0, "f")
            place = plan.flow.place(path, plan.function_of(load)) if path is not None else None
            if holds(places, place, plan.tree.statement(load)):
                return True
    return False


def told_as_read(plan: Plan, call: cst.Call) -> None:
    """Mark a call of a function of the project that loads the path it gets."""
    plan.todo("MG623", call, f"{dotted(call.func) or 'this'} loads what it gets with torch.load: a DeepSpeed checkpoint is a directory",
              "torch.load reads files: what the script saved is in its *mp_rank_00_model_states.pt, under 'script'")  # fmt: skip


Names = dict[Place, Statement | None]
"""Variables that hold a path; that of a loop holds it inside of the loop alone, which is given with it."""


def held_by(plan: Plan, found: Names, *, arguments: bool = False) -> Names:
    """The variables that hold a path: those given, their aliases, and those of loops over them.

    With ``arguments`` also the parameters of the functions that get it.
    """
    kinds = ("assign", "for", "argument") if arguments else ("assign", "for")
    while True:
        more: Names = {
            binding.place: binding.statement if binding.kind == "for" else None
            for binding in plan.flow.bindings
            if binding.kind in kinds and binding.index is None and binding.place not in found
            and any(plan.flow.place(node, binding.function) in found for node in elements(binding.value))
        }  # fmt: skip
        if not more:
            return found
        found = {**found, **more}


def holds(names: Names, place: Place | None, statement: Statement) -> bool:
    """Whether a variable holds the path where a statement stands."""
    if place is None or place not in names:
        return False
    loop = names[place]
    return loop is None or loop.order < statement.order <= loop.last_order


def elements(node: Node) -> list[Node]:
    """What a value may be, or run over: the elements of a tuple, both branches of a choice."""
    if isinstance(node, cst.Tuple | cst.List):
        return [element.value for element in node.elements]
    if isinstance(node, cst.IfExp):
        return [*elements(node.body), *elements(node.orelse)]
    return [node] if isinstance(node, cst.Name | cst.Attribute) else []
