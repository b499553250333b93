"""Classes that are chosen when the script runs: ``TRAINERS[args.trainer](…)``, ``cls = A if fast else B; cls(…)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.tree import Class, Function, Node

if TYPE_CHECKING:
    from dsmigrate.codemod.flow import Flow


def chosen_classes(flow: Flow, func: Node, function: Function) -> list[Class]:
    """The classes of the tree of which a called expression is one; none where it may be something else."""
    if isinstance(func, cst.Subscript):
        return _chosen(flow, func, function)
    if not isinstance(func, cst.Name) or func.value in function.params:
        return []
    values = [
        statement.node.value
        for statement in function.statements
        if isinstance(statement.node, cst.Assign)
        if any(isinstance(t.target, cst.Name) and t.target.value == func.value for t in statement.node.targets)
    ]
    found = [_chosen(flow, value, function) for value in values]
    return list(dict.fromkeys(cls for one in found for cls in one)) if all(found) else []


def made_classes(flow: Flow, call: cst.Call, function: Function) -> list[Class]:
    """The classes of the tree of one of which a call makes an object."""
    cls = flow.made_class(call, function)
    return chosen_classes(flow, call.func, function) if cls is None else [cls]


def _chosen(flow: Flow, value: Node, function: Function) -> list[Class]:
    if isinstance(value, cst.IfExp):
        branches = [_chosen(flow, branch, function) for branch in (value.body, value.orelse)]
        return [cls for one in branches for cls in one] if all(branches) else []
    if isinstance(value, cst.Name):
        cls = flow.class_named(value.value, function)
        return [] if cls is None else [cls]
    if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Name):
        return []
    found = flow.tree.resolve(value.value.value, function)
    top, name = (function.top, value.value.value) if found is None else (found[0].top, found[1])
    return _tables(flow).get((top, name), [])


def _tables(flow: Flow) -> dict[tuple[Function, str], list[Class]]:
    """The dictionaries at the top of a file whose values are classes of the tree, and nothing else."""
    if flow.tables is None:
        flow.tables = {}
        for statement in flow.tree.statements:
            node, function = statement.node, statement.function
            if not function.is_module or not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Dict):
                continue
            values = [element.value for element in node.value.elements]
            classes = [flow.class_named(v.value, function) for v in values if isinstance(v, cst.Name)]
            known = [cls for cls in classes if cls is not None]
            for target in node.targets:
                if isinstance(target.target, cst.Name) and len(known) == len(values):
                    flow.tables[function.top, target.target.value] = list(dict.fromkeys(known))
    return flow.tables
