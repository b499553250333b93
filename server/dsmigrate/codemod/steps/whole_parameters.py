"""Whether an optimizer class of the tree looks at whole parameters, which ZeRO 1-3 cut into flat pieces."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from dsmigrate.codemod.dispatch import find_method, lineage
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.elementwise import Look, Reader
from dsmigrate.codemod.steps.elementwise_words import ELEMENTWISE, LAYERWISE, LOOKS
from dsmigrate.codemod.tree import Class, Function, Node, descendants

_ROOTS = frozenset({"Optimizer", "object", "ABC", "Generic"})


def look_of(plan: Plan, cls: Class) -> Look | None:
    """The first thing in a class, its bases and the functions that its step calls that looks at whole parameters."""
    classes = lineage(plan.flow, cls)
    step = find_method(plan.flow, cls, "step")
    reader = Reader(plan.flow, has_known_name=cls.name in ELEMENTWISE)
    if step is not None:
        reader.follow(step, {})
    looks = [look for one in classes for look in _bases(plan, one, needed=step is None)]
    looks += reader.looks
    for one in classes:
        for method in one.methods.values():
            if method.name == "__init__":
                looks += _made(method)
            elif method not in reader.read:
                looks += _by_word(method.node)
    sure = [look for look in looks if look.is_sure]
    return next(iter(sure or looks), None)


def _bases(plan: Plan, cls: Class, *, needed: bool) -> list[Look]:
    """Bases outside of the tree: layer-wise ones, and others that are not known, where their step is ``needed``."""
    looks: list[Look] = []
    for base in cls.bases:
        if plan.flow.class_named(base, cls.scope) is None:
            names = _names(plan, cls, base)
            last = {name.rpartition(".")[2] for name in names}
            if any(map(LAYERWISE.search, last)) and not is_elementwise_of_torch(names, last):
                looks.append(Look(cls.node.name, is_sure=True))
            elif needed and not last & (_ROOTS | ELEMENTWISE):
                looks.append(Look(cls.node.name, is_sure=False))
    if needed and len(cls.bases) < len(cls.node.bases):
        looks.append(Look(cls.node.name, is_sure=False))
    return looks


def names_of_bases(plan: Plan, cls: Class) -> set[str]:
    """The full names of the bases of a class, those of classes of the tree included."""
    return {name for base in cls.bases for name in _names(plan, cls, base)}


def _names(plan: Plan, cls: Class, base: str) -> set[str]:
    root, dot, rest = base.partition(".")
    return {f"{full}{dot}{rest}" for full in plan.imports.meanings(root, cls.scope) or {root}}


def is_elementwise_of_torch(names: Collection[str], last: set[str]) -> bool:
    """Whether full names mean a class of torch.optim that treats every number by itself."""
    return any(name.startswith("torch.optim.") for name in names) and bool(last & ELEMENTWISE)


def _by_word(node: Node) -> list[Look]:
    return [
        Look(sub, is_sure=True)
        for sub in descendants(node)
        if (isinstance(sub, cst.Attribute) and sub.attr.value in LOOKS) or isinstance(sub, cst.MatrixMultiply)
    ]


def _made(method: Function) -> list[Look]:
    """What ``__init__`` keeps of the parameters as they are then, under other names than the groups'."""
    given = method.params[1:2]
    looks = _by_word(method.node)
    for statement in method.statements:
        targets = [target for target in assigned_to(statement.node) if isinstance(target, cst.Attribute)]
        value = getattr(statement.node, "value", None)
        if value is not None and any(t.attr.value not in ("param_groups", "state", "defaults") for t in targets):
            if any(isinstance(sub, cst.Name) and sub.value in given for sub in descendants(value)):
                looks.append(Look(statement.node, is_sure=True))
    states = (sub for sub in descendants(method.node) if isinstance(sub, cst.Subscript))
    looks += [Look(sub, is_sure=True) for sub in states if dotted(sub.value) == f"{method.self_name}.state"]
    return looks
