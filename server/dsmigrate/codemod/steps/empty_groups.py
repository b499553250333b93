"""MG412: groups of the optimizer that may be without parameters, which DeepSpeed takes out, so that the others move up."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import SCHEDULER_WORD
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG412",
        "No parameter group may be empty",
        "Where groups are made by a filter and told apart by their number, the script asserts that each of them holds something.",
        "DeepSpeed takes groups without parameters out of the optimizer, so that param_groups[1] becomes param_groups[0]: rates "
        "and weight decay that are written by number reach another group, and schedules with a function per group fail.",
        "deepspeed/runtime/engine.py, _configure_optimizer: param_groups[:] = [pg for pg in … if len(pg['params']) != 0]; run on "
        "two processes",
        Kind.KEPT,
    ),
)

_DEPTH = 5
_BY_NUMBER = frozenset({"enumerate", "zip"})


def empty_groups(plan: Plan) -> None:
    """Let the script assert that no group is empty, where one may be and the groups are told apart by their number."""
    site = plan.site
    where, schedule = _by_number(plan), _schedule(plan, with_lists=False)
    if site is None or (where or schedule) is None or plan.options.optimizer == "config":
        return
    for made in plan.roles.optimizers:
        params = argument(made.call, 0, "params") if made.call is not None else None
        groups = _groups(plan, params, made.statement.function, _DEPTH) if params is not None else []
        filters = [found for value, function in groups if (found := _filter(plan, value, function, _DEPTH)) is not None]
        if len(groups) > 1 and where is None and any("requires_grad" in plan.code(found) for found in filters):
            where = schedule  # an option that freezes a part may leave its group empty, and rates go by the number too
        if len(groups) > 1 and filters and where is not None:
            plan.facts["asserted_groups"] = (
                f'assert all(g["params"] for g in {site.optimizer}.param_groups), "DeepSpeed takes empty groups out"'
            )
            plan.kept("MG412", where, "no parameter group may be empty when the script runs: it is asserted",
                      "DeepSpeed takes groups without parameters out, so that the others get other numbers")  # fmt: skip
            return


def _by_number(plan: Plan) -> Statement | None:
    """Where groups are told apart by their number, or a schedule has a value for each of them."""
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.If | cst.While | cst.With | cst.Try):
            continue
        for sub in descendants(node.iter if isinstance(node, cst.For) else node):
            if isinstance(sub, cst.Subscript) and _is_groups(plan, sub.value):
                return statement
            if isinstance(sub, cst.Call) and dotted(sub.func) in _BY_NUMBER:
                if any(_is_groups(plan, arg.value) for arg in sub.args):
                    return statement
    return _schedule(plan, with_lists=True)


def _schedule(plan: Plan, *, with_lists: bool) -> Statement | None:
    """Where a schedule of the optimizer is made, perhaps one with a list of values or functions."""
    for call in plan.tree.calls:
        name = (dotted(call.func) or "").rpartition(".")[2]
        if not name.endswith("LR") and not SCHEDULER_WORD.search(name):
            continue
        given = [arg.value for arg in call.args]
        lists = any(isinstance(value, cst.List | cst.ListComp) for value in given)
        if (lists or not with_lists) and any(map(plan.roles.is_optimizer, given)):
            return plan.tree.statement(call)
    return None


def _is_groups(plan: Plan, node: Node) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "param_groups" and plan.roles.is_optimizer(node.value)


def _groups(plan: Plan, node: Node, function: Function, depth: int) -> list[tuple[Node, Function]]:
    """What the ``params`` of each group come from, where the groups are written out as dictionaries."""
    if isinstance(node, cst.List | cst.Tuple):
        dictionaries = [element.value for element in node.elements if isinstance(element.value, cst.Dict)]
        found = [
            entry.value
            for dictionary in dictionaries
            for entry in dictionary.elements
            if isinstance(entry, cst.DictElement) and plan.code(entry.key).strip("\"'") == "params"
        ]
        return [(value, function) for value in found]
    return [
        group
        for value, where in _behind(plan, node, function)
        if depth
        for group in _groups(plan, value, where, depth - 1)
    ]


def _behind(plan: Plan, node: Node, function: Function) -> list[tuple[Node, Function]]:
    """What a variable is bound to, or a function returns."""
    callee = plan.flow.callee(node) if isinstance(node, cst.Call) else None
    place = plan.flow.returned(callee) if callee is not None else plan.flow.place(node, function)
    return [
        (b.value, b.function)
        for b in (plan.flow.by_place.get(place, ()) if place is not None else ())
        if b.index is None and b.kind != "for"
    ]


def _filter(plan: Plan, node: Node, function: Function, depth: int) -> Node | None:
    """The filter that parameters come through, or the list that something fills; None where neither is seen."""
    if isinstance(node, cst.ListComp | cst.GeneratorExp):
        return node if node.for_in.ifs else None
    if isinstance(node, cst.Call) and dotted(node.func) == "filter":
        return node
    if isinstance(node, cst.List) and not node.elements:
        return node
    inner = (
        [(arg.value, function) for arg in node.args]
        if isinstance(node, cst.Call) and dotted(node.func) == "list"
        else _behind(plan, node, function)
    )
    found = (_filter(plan, value, where, depth - 1) for value, where in inner if depth)
    return next((each for each in found if each is not None), None)
