"""Autocast regions around the engine: where they are, whether they are on, and in which type."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import AUTOCAST_NAMES, qualifies
from dsmigrate.codemod.steps.entered_regions import decorators_of, first_inside, only_call, stands_for_autocast
from dsmigrate.codemod.steps.made_regions import made_region
from dsmigrate.codemod.steps.reaching import runs_engine, serves_training, under_no_grad
from dsmigrate.codemod.steps.region_types import type_of
from dsmigrate.codemod.steps.scaler_conditions import scaler_condition
from dsmigrate.codemod.tree import Node, Statement
from dsmigrate.codemod.values import resolve


@dataclass(frozen=True, slots=True)
class Region:
    """One autocast: whether it is on and in which type, as source text or literals at the place of the engine."""

    enabled: str | bool
    dtype: str
    dtype_is_text: bool = False
    probe: str | None = None
    condition: str | None = None
    """Under which it is entered at all, beside a ``probe``; without one it is part of ``enabled``."""


def regions_around_engine(plan: Plan) -> list[tuple[Node, Statement]]:
    """Autocast expressions of ``with`` statements and decorators inside which the engine is called."""
    around: list[tuple[Node, Statement]] = [
        (item.item, statement)
        for statement in plan.tree.withs
        if isinstance(statement.node, cst.With)
        for item in statement.node.items
        if _enters(plan, item.item, statement)
    ]
    around += [
        (decorator, plan.tree.statement(function.node))
        for function in plan.tree.functions
        for decorator in decorators_of(plan, function)
    ]
    return [region for region in around if _engine_called_within(plan, region[1])]


def _enters(plan: Plan, item: Node, statement: Statement) -> bool:
    """Whether what a ``with`` statement is given is a region, or enters one."""
    return "C" in plan.tags(item) or may_be_autocast(item) or stands_for_autocast(plan, item, statement.function)


def _engine_called_within(plan: Plan, statement: Statement) -> bool:
    """Whether the engine runs in a region: called there, or in what is called there."""
    inner = [c for c in plan.tree.calls if statement.order < plan.tree.statement(c).order <= statement.last_order]
    return any(runs_engine(plan, call) for call in inner)


def helps_to_train(plan: Plan, statement: Statement) -> bool:
    """Whether a region stands in a function that works for a training step."""
    inside = first_inside(plan, statement)
    return serves_training(plan, inside.function) and not under_no_grad(plan, inside)


def in_region(plan: Plan, statement: Statement) -> bool:
    """Whether a statement stands in an autocast region of its function, or in a function that runs in one."""
    return any(
        isinstance(outer.node, cst.With) and any(_enters(plan, i.item, outer) for i in outer.node.items)
        for outer in (statement, *statement.enclosing())
    ) or any(True for _ in decorators_of(plan, statement.function))


def may_be_autocast(node: Node) -> bool:
    """A parameter or attribute that callers outside this file fill, by its name; or a factory such as get_autocast()."""
    text = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    last = text.rpartition(".")[2].lower()
    return "autocast" in last or last in ("amp_context", "amp_ctx")


def resolve_region(plan: Plan, node: Node, statement: Statement) -> Region | None:
    """What an autocast expression of a ``with`` statement comes to where the engine is made; None if it is unknown there."""
    call = _autocast_call(plan, node)
    if call is not None:
        return _from_call(plan, call, plan.function_of(call))
    function = statement.function
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    # A parameter: follow it to its callers.
    seen = 0
    while bindings and all(b.kind == "argument" for b in bindings) and seen < 4:
        values = {plan.code(b.value) for b in bindings}
        if len(values) != 1:
            break
        node, function = bindings[0].value, bindings[0].function
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        seen += 1
    if len(bindings) == 1:
        value = bindings[0].value
        direct = _autocast_call(plan, value)
        if direct is not None:
            return _from_call(plan, direct, bindings[0].function)
        if isinstance(value, cst.IfExp):
            return _from_choice(plan, value, bindings[0].function)
    sole = only_call(plan, node, function)
    region = _from_call(plan, sole, plan.function_of(sole)) if sole is not None else None
    if region is not None:
        return region
    text = carry(plan, node, function)
    if text is None and isinstance(node, cst.Call) and not node.args:
        text = carry(plan, node.func, function)
        text = f"{text}()" if text is not None else None
    text = text or made_region(plan, node, statement.function)
    if text is None:
        return None
    plan.need("torch")
    return Region(enabled=True, dtype="bfloat16", probe=text)


def _autocast_call(plan: Plan, node: Node) -> cst.Call | None:
    if not isinstance(node, cst.Call) or not qualifies(plan.imports, node.func, AUTOCAST_NAMES):
        return None
    if isinstance(node.func, cst.Name) and not any(
        "." in name for name in plan.imports.names(node.func) & AUTOCAST_NAMES
    ):
        place = plan.flow.place(node.func, plan.function_of(node))
        if place is not None and plan.flow.by_place.get(place):
            return None  # a variable or parameter of that name: what it makes is what it was given
    return node


def _from_choice(plan: Plan, node: cst.IfExp, function: object) -> Region | None:
    """``nullcontext() if cpu else autocast(…)``, in either order."""
    for branch, negated in ((node.body, False), (node.orelse, True)):
        call = _autocast_call(plan, branch)
        if call is None:
            continue
        inner = _from_call(plan, call, function)
        test = carry(plan, node.test, function)  # type: ignore[arg-type]
        if inner is None or test is None:
            return None
        condition = f"not ({test})" if negated else test
        if isinstance(inner.enabled, str):
            condition = f"({condition}) and ({inner.enabled})"
        elif not inner.enabled:
            return inner
        return Region(condition, inner.dtype, inner.dtype_is_text)
    return None


def _from_call(plan: Plan, call: cst.Call, function: object) -> Region | None:
    if any(arg.star for arg in call.args):
        return None
    names = plan.imports.names(call.func)
    legacy = any(".cuda.amp." in name for name in names)
    on_cpu = any(".cpu.amp." in name for name in names)
    if legacy or on_cpu:
        enabled_node, dtype_node = argument(call, 0, "enabled"), argument(call, 1, "dtype")
        device = "cpu" if on_cpu else "cuda"
        device_text: str | None = None
    else:
        device_node = argument(call, 0, "device_type")
        dtype_node, enabled_node = argument(call, 1, "dtype"), argument(call, 2, "enabled")
        device = device_node.evaluated_value if isinstance(device_node, cst.SimpleString) else "cuda"  # type: ignore[assignment]
        device_text = (
            None if device_node is None or isinstance(device_node, cst.SimpleString) else plan.code(device_node)
        )
        if device_node is None and not call.args:
            device = "cuda"
    enabled: str | bool = True
    if enabled_node is not None:
        value = resolve(plan, enabled_node, function)  # type: ignore[arg-type]
        if value.known and value.expression is None and not value.is_default:
            enabled = bool(value.static)
        else:
            text = value.expression or scaler_condition(plan, enabled_node, function)  # type: ignore[arg-type]
            if text is None:
                return None
            enabled = text
    found = type_of(plan, dtype_node, function, device_text=device_text, on_cpu=device == "cpu")  # type: ignore[arg-type]
    return None if found is None else Region(enabled, *found)
