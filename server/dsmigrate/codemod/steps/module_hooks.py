"""What functions are hooked into modules, to be run at every forward or backward, and which parameter is the module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.callables import Held, held_by
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node

_REGISTERS = re.compile(r"^register_(?:module_)?(?:forward|backward|full_backward)_(?:pre_)?hook$")


@dataclass(frozen=True, slots=True)
class Hook:
    """A function or lambda that a call registers, with the name of the parameter that gets the module."""

    runs: Function | cst.Lambda
    parameter: str
    call: cst.Call


def hooks(plan: Plan) -> list[Hook]:
    """All functions of the tree that are registered as hooks of modules."""
    found: list[Hook] | None = plan.facts.get("module_hooks")
    if found is None:
        registers = [call for call in plan.tree.calls if _REGISTERS.match(_last_name(call.func))]
        found = plan.facts["module_hooks"] = [hook for call in registers for hook in _registered(plan, call)]
    return found


def hooked(plan: Plan, name: cst.Name, function: Function) -> Iterator[cst.Call]:
    """The calls that hook the function or lambda in which a name is the module."""
    for hook in hooks(plan):
        if hook.parameter != name.value:
            continue
        if hook.runs is function or any(outer is hook.runs for outer in plan.tree.ancestors(name)):
            yield hook.call


def is_in_a_hook(plan: Plan, node: Node) -> bool:
    """Whether a node is run by a module's forward or backward, whatever ran before the engine was made."""
    known = {hook.runs for hook in hooks(plan)}
    if plan.function_of(node) in known:
        return True
    lambdas = {sub for sub in (node, *plan.tree.ancestors(node)) if isinstance(sub, cst.Lambda)}
    return not known.isdisjoint(lambdas)


def _last_name(func: Node) -> str:
    if isinstance(func, cst.Attribute):
        return func.attr.value
    return func.value if isinstance(func, cst.Name) else ""


def _registered(plan: Plan, call: cst.Call) -> Iterator[Hook]:
    function = plan.function_of(call)
    given = argument(call, 0, "hook")
    if isinstance(given, cst.Lambda):
        params = [*given.params.posonly_params, *given.params.params]
        if params:
            yield Hook(given, params[0].name.value, call)
        return
    for held in _held(plan, given, function) if given is not None else ():
        names = plan.flow.positional(held.function)[held.filled :]
        if names:
            yield Hook(held.function, names[0], call)


def _held(plan: Plan, given: Node, function: Function) -> list[Held]:
    """The functions that an argument may be: by name, filled in advance, made by a call, or an object that is called."""
    found = held_by(plan.flow, given, function)
    if found or not isinstance(given, cst.Call):
        return found
    cls = plan.flow.made_class(given, function)
    if cls is not None:
        return [Held(cls.methods["__call__"])] if "__call__" in cls.methods else []
    maker = plan.flow.callee(given)
    returns = plan.flow.by_place.get(plan.flow.returned(maker), ()) if maker is not None else ()
    return [one for binding in returns for one in held_by(plan.flow, binding.value, binding.function)]
