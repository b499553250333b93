"""Objects that hold an optimizer and step it by a method of their own: warm-up wrappers like NoamOpt and ScheduledOptim.

They are no optimizers, and their methods are the script's: what steps is ``self.optimizer.step()`` inside of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.dispatch import lineage
from dsmigrate.codemod.role_names import OPTIMIZER_NAME, SCHEDULER_WORD
from dsmigrate.codemod.tree import Class, Node

if TYPE_CHECKING:
    from dsmigrate.codemod.flow import Flow, Place

_PLAIN = frozenset({"object", "ABC", "abc.ABC"})


def find_holders(flow: Flow) -> dict[str, str]:
    """The classes of the tree that step an optimizer of theirs and run no backward: the attribute that has it, by key."""
    found: dict[str, str] = {}
    trains: set[str] = set()
    for call in flow.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in ("step", "backward"):
            continue
        function = flow.tree.statement(call).function
        if function.class_seen is None:
            continue
        if func.attr.value == "backward":
            trains.add(function.class_seen.key)
        elif (name := _stepped(call, func, function.self_name)) is not None:
            if OPTIMIZER_NAME.match(name) and not SCHEDULER_WORD.search(name):
                found.setdefault(function.class_seen.key, name)
    return {key: name for key, name in found.items() if key not in trains and _is_plain(flow, flow.tree.classes, key)}


def _stepped(call: cst.Call, func: cst.Attribute, self_name: str | None) -> str | None:
    """The attribute in ``self.optimizer.step()`` or ``scaler.step(self.optimizer)``."""
    given = _own_attribute(call.args[0].value, self_name) if call.args else None
    return given or _own_attribute(func.value, self_name)


def _own_attribute(node: Node, self_name: str | None) -> str | None:
    is_own = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == self_name
    return node.attr.value if is_own and isinstance(node, cst.Attribute) else None


def _is_plain(flow: Flow, classes: dict[str, Class], key: str) -> bool:
    """Whether a class derives from classes of the tree and nothing else: neither a module nor an optimizer."""
    return all(
        base in _PLAIN or flow.class_named(base, one.scope) is not None
        for one in lineage(flow, classes[key])
        for base in one.bases
    )


def held_name(flow: Flow, cls: Class) -> str | None:
    """The attribute by which objects of a class hold the optimizer that they step; None for any other class."""
    if not flow.holders:
        return None
    return next((flow.holders[one.key] for one in lineage(flow, cls) if one.key in flow.holders), None)


def is_holder(flow: Flow, place: Place) -> bool:
    """Whether a place has objects that hold an optimizer, and nothing else that is known."""
    kinds = flow.kinds.get(place, ()) if flow.holders else ()
    return bool(kinds) and all(held_name(flow, cls) is not None for cls in kinds)
