"""Autocast regions that a function of the project makes: it is asked once more where the engine is made."""

from __future__ import annotations

import posixpath

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, descendants

_DEPTH = 5
# What a function may call that only chooses a region: nothing of it changes anything.
_CHOOSING = frozenset({
    "partial", "autocast", "nullcontext", "suppress", "device", "lower", "upper", "startswith", "endswith", "is_available",
    "is_bf16_supported", "get", "getattr", "hasattr", "isinstance", "str", "bool", "dict", "ValueError",
    "NotImplementedError",
})  # fmt: skip


def made_region(plan: Plan, node: Node, function: Function) -> str | None:
    """Source text of a region for the place of the engine; None where no function makes it, or it cannot be had there.

    ``helper(args.precision)()`` for a region ``region()`` that was made by ``region = helper(args.precision)``.
    """
    made, opened = node, False
    if isinstance(node, cst.Call) and not node.args and plan.flow.callee(node) is None:
        made, opened = node.func, True
    origins = _origins(plan, made, function, _DEPTH)
    if len(origins) != 1 or (origin := origins.pop()) is None:
        return None
    call, where = origin
    callee = plan.flow.callee(call)
    if callee is None or not _only_chooses(callee):
        return None
    texts = [carry(plan, arg.value, where) if not arg.star else None for arg in call.args]
    name = _name_at_engine(plan, call, callee) if None not in texts else None
    if name is None:
        return None
    keywords = [f"{arg.keyword.value}=" if arg.keyword is not None else "" for arg in call.args]
    arguments = ", ".join(f"{keyword}{text}" for keyword, text in zip(keywords, texts, strict=True))
    return f"{name}({arguments}){'()' if opened else ''}"


def _origins(plan: Plan, node: Node, function: Function, depth: int) -> set[tuple[cst.Call, Function] | None]:
    """The calls that a variable comes from, through parameters and assignments; None among them: something else too."""
    if isinstance(node, cst.Call):
        return {(node, function)}
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if not bindings or not depth or any(b.index is not None or b.kind not in ("assign", "argument") for b in bindings):
        return {None}
    return {origin for b in bindings for origin in _origins(plan, b.value, b.function, depth - 1)}


def _only_chooses(callee: Function) -> bool:
    """Whether a function can be called once more without harm."""
    node = callee.node
    if (
        not isinstance(node, cst.FunctionDef)
        or node.decorators
        or node.asynchronous is not None
        or callee.owner is not None
    ):
        return False
    for sub in descendants(node.body):
        if isinstance(
            sub, cst.Yield | cst.Await | cst.Global | cst.Nonlocal | cst.With | cst.For | cst.While | cst.Del
        ):
            return False
        if isinstance(sub, cst.Call) and (dotted(sub.func) or "").rpartition(".")[2] not in _CHOOSING:
            return False
        if isinstance(sub, cst.AssignTarget) and not isinstance(sub.target, cst.Name):
            return False
    return True


def _name_at_engine(plan: Plan, call: cst.Call, callee: Function) -> str | None:
    """By which name the function is known where the engine is made; it is imported there where it is not."""
    site = plan.site
    assert site is not None
    name = dotted(call.func)
    if name is None or "." in name:
        return None
    function = plan.function_of(call)
    here, there = plan.imports.meanings(name, function), plan.imports.meanings(name, site.function)
    same_file = site.function.top is function.top
    if (here and here == there) or (same_file and not here and callee.name in site.function.top.inner):
        return name
    module, _, last = (min(here) if len(here) == 1 else "").rpartition(".")
    taken = there or plan.flow.by_place.get(plan.flow.variable(name, site.function)) or name in site.function.top.inner
    if module.startswith("."):
        module = _module_at_engine(plan, module, function)
    if not module or last != callee.name or taken:
        return None
    renamed = f" as {name}" if name != last else ""
    line = f"from {module} import {last}{renamed}"
    if line not in plan.before_engine:
        plan.before_engine.append(line)
    return name


def _module_at_engine(plan: Plan, module: str, function: Function) -> str:
    """The name of a module that another file imports relatively, for the engine's file; empty where it is not known there.

    That file imports from the same package by its full name already, or stands beside it and imports relatively itself.
    """
    assert plan.site is not None
    here, there = plan.tree.part_of_top[function.top], plan.tree.part_of_top[plan.site.function.top]
    names = {name for meanings in plan.imports.by_part[there].values() for name in meanings}
    folder = posixpath.dirname(here.path)
    if folder == posixpath.dirname(there.path):
        return module if any(name.startswith(".") for name in names) else ""
    level = len(module) - len(module.lstrip("."))
    package = folder.split("/")
    package = package[: len(package) - level + 1]
    find = plan.tree.find_module
    for start in range(len(package)):
        root = ".".join(package[start:])
        full = f"{root}.{module[level:]}"
        if any(name.startswith(f"{root}.") for name in names) and find is not None:
            found = find(there, full, 0)
            if found is not None and found is find(here, module[level:], level):
                return full
    return ""
