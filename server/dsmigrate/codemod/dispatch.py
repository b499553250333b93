"""Which functions a call may run where more than one can stand behind it: overrides, and objects of several classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.binding_forms import is_abstract
from dsmigrate.codemod.tree import Class, Function

if TYPE_CHECKING:
    from dsmigrate.codemod.flow import Flow


def find_method(flow: Flow, cls: Class, name: str) -> Function | None:
    """A method by name, looked up through the base classes of the tree."""
    seen: set[str] = set()
    queue = [cls]
    while queue:
        current = queue.pop(0)
        if current.key in seen:
            continue
        seen.add(current.key)
        if name in current.methods:
            own = current.methods[name]
            return (_override(flow, cls, name) or own) if is_abstract(own) else own
        queue.extend(flow.bases(current))
    # A hook that a base class calls and a subclass overrides.
    return _override(flow, cls, name)


def _override(flow: Flow, cls: Class, name: str) -> Function | None:
    for other in flow.tree.classes.values():
        if name in other.methods and cls in flow.bases(other):
            return other.methods[name]
    return None


def is_property(flow: Flow, function: Function) -> bool:
    """Whether a method is read like an attribute."""
    node = function.node
    names = [flow.imports.names(d.decorator) for d in node.decorators] if isinstance(node, cst.FunctionDef) else []
    return any(found & {"property", "functools.cached_property"} for found in names)


def others(flow: Flow, call: cst.Call, first: Function) -> list[Function]:
    """What else a call may run, beside the function that was found first: none for a call that means one function."""
    if first.owner is None or first.name == "__init__":
        return []
    function = flow.tree.statement(call).function
    found = [first]
    for cls in _receivers(flow, call, first, function):
        method = find_method(flow, cls, first.name)
        if method is not None and method not in found:
            found.append(method)
    return found[1:]


def _receivers(flow: Flow, call: cst.Call, first: Function, function: Function) -> list[Class]:
    """The classes that the object of a method call may have."""
    func = call.func
    if first.name == "__call__" and not (isinstance(func, cst.Attribute) and func.attr.value == "__call__"):
        place = flow.place(func, function)
        return flow.kinds.get(place, []) if place is not None else []
    if not isinstance(func, cst.Attribute) or isinstance(func.value, cst.Call):
        return []  # `super().step()`, `Trainer().fit()`
    base = func.value
    if isinstance(base, cst.Name) and base.value == function.self_name and function.class_seen is not None:
        return _derived(flow, function.class_seen)
    place = flow.place(base, function)
    return flow.kinds.get(place, []) if place is not None else []


def _derived(flow: Flow, cls: Class) -> list[Class]:
    """The classes of the tree that derive from a class, near ones first."""
    found: list[Class] = []
    queue = [cls]
    while queue:
        current = queue.pop(0)
        for other in flow.tree.classes.values():
            if other is not cls and other not in found and current in flow.bases(other):
                found.append(other)
                queue.append(other)
    return found


def lineage(flow: Flow, cls: Class) -> list[Class]:
    """A class and all its bases in the tree, near ones first."""
    found = [cls]
    for one in found:
        found.extend(base for base in flow.bases(one) if base not in found)
    return found
