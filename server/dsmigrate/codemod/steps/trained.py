"""Which of several wrapped models the optimizer trains."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import OptimizerSite, Wrap
from dsmigrate.codemod.tree import Function, Node, descendants


def wrap_groups(plan: Plan) -> list[list[Wrap]]:
    """Wraps of one and the same variable belong together (if/else twins, one per branch)."""
    leader = {str(w.index): str(w.index) for w in plan.roles.wraps}

    def find(key: str) -> str:
        while leader[key] != key:
            key = leader[key]
        return key

    by_target: dict[object, str] = {}
    for wrap in plan.roles.wraps:
        target = target_of(wrap)
        key: object = plan.flow.place(target, wrap.function) if target is not None else None
        if key is None and isinstance(wrap.statement.node, cst.Return):
            key = ("return", id(wrap.function))
        if key is None:
            continue
        if key in by_target:
            leader[find(str(wrap.index))] = find(by_target[key])
        else:
            by_target[key] = str(wrap.index)
    groups: dict[str, list[Wrap]] = {}
    for wrap in plan.roles.wraps:
        groups.setdefault(find(str(wrap.index)), []).append(wrap)
    return list(groups.values())


def target_of(wrap: Wrap) -> Node | None:
    """The variable or attribute that a wrap is assigned to."""
    node = wrap.statement.node
    if isinstance(node, cst.Assign) and len(node.targets) >= 1:
        target = node.targets[0].target
        return None if isinstance(target, cst.Tuple | cst.List) else target
    if isinstance(node, cst.AnnAssign):
        return node.target
    return None


def trained_groups(plan: Plan, groups: list[list[Wrap]]) -> list[list[Wrap]]:
    """The groups whose parameters reach an optimizer that is stepped."""
    if len(groups) == 1:
        return groups
    trained = []
    for group in groups:
        indexes = {str(w.index) for w in group}
        if any(_optimizer_reads(plan, site, indexes) for site in plan.roles.optimizers):
            trained.append(group)
    return trained


def _optimizer_reads(plan: Plan, site: OptimizerSite, indexes: set[str], depth: int = 6) -> bool:
    """Whether what an optimizer is made from leads back to a model of the group."""
    if site.call is None:
        return False
    function = site.statement.function
    queue: list[tuple[Node, Function, int]] = [(arg.value, function, depth) for arg in site.call.args]
    if isinstance(site.call.func, cst.Attribute):
        queue.append((site.call.func.value, function, depth))
    seen: set[object] = set()
    while queue:
        node, where, left = queue.pop()
        for sub in _readable(node):
            tags = plan.roles.of(sub, where)
            if any(tag[0] in "ER" and tag[1:] in indexes for tag in tags):
                return True
            place = plan.flow.place(sub, where)
            if place is None or place in seen or left == 0:
                continue
            seen.add(place)
            if any(tag[0] in "ER" for tag in tags):
                continue
            queue.extend((b.value, b.function, left - 1) for b in plan.flow.by_place.get(place, ()))
            # Lists of parameters are often filled by append and extend.
            for call in plan.tree.calls:
                func = call.func
                if (
                    isinstance(func, cst.Attribute)
                    and func.attr.value in ("append", "extend", "add_param_group", "update")
                    and plan.flow.place(func.value, plan.function_of(call)) == place
                ):
                    queue.extend((arg.value, plan.function_of(call), left - 1) for arg in call.args)
    return False


def _readable(node: Node) -> list[Node]:
    return [sub for sub in descendants(node) if isinstance(sub, cst.Name | cst.Attribute)]
