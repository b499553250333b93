"""MG202: the number of processes that ``mp.spawn`` started is the launcher's now, wherever the script reads it."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import Binding, Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.managers import mentioned
from dsmigrate.codemod.tree import Function, Node, descendants


def launcher_counts(plan: Plan, count: Node, call: cst.Call, init_names: frozenset[str]) -> None:
    """Let what reads the number of processes of a spawn agree with the processes there are."""
    if _forget(plan, count, call):
        return
    _say(plan, count, call)
    place = plan.flow.place(count, plan.function_of(call))
    if place is not None and _is_of_the_group(plan, place, init_names):
        _take(plan, count, place, [call, *_inits(plan, init_names)])


def size_of_the_group(plan: Plan, size: Node, call: cst.Call) -> None:
    """The same for a world size that the whole file reads: an assignment beside the group would not reach the others."""
    function = plan.function_of(call)
    place = plan.flow.place(size, function)
    if isinstance(size, cst.Name) and place is not None and place[1] == id(function.top) and not mentioned(plan):
        _take(plan, size, place, [call])


def _take(plan: Plan, count: Node, place: Place, calls: list[cst.Call]) -> None:
    """Take the launcher's number where a count is made, if anything but ``calls`` reads it."""
    made = _made(plan, place)
    if made is None or not _is_number(made.value) or place in plan.facts.get("launcher_counts", ()):
        return
    inside = set(descendants(made.statement.node)).union(*(descendants(call) for call in calls))
    if not any(node not in inside for node in _readers(plan, place)):
        return
    value = plan.code(made.value)
    plan.need("os")
    plan.edits.replace(made.value, f'int(os.environ.get("WORLD_SIZE", {value}))')
    plan.facts.setdefault("launcher_counts", set()).add(place)
    plan.converted("MG202", made.statement, f"{plan.code(count)} is the number of processes that the launcher started",
                   "what is worked out from it has to agree with the processes there are")  # fmt: skip


def is_launchers(plan: Plan, value: Node, function: Function) -> bool:
    """Whether an expression names a count that takes the launcher's number where it is made."""
    return plan.flow.place(value, function) in plan.facts.get("launcher_counts", ())


def _made(plan: Plan, place: Place) -> Binding | None:
    """The one assignment of a variable, which nothing adds to."""
    bindings = plan.flow.by_place.get(place, ())
    added = any(
        isinstance(s.node, cst.AugAssign) and plan.flow.place(s.node.target, s.function) == place
        for s in plan.tree.statements
    )
    one = bindings[0] if len(bindings) == 1 and not added else None
    return one if one is not None and one.kind == "assign" and one.index is None else None


def _is_number(value: Node) -> bool:
    """A written-out number, or the number of devices, alone or as the most there may be."""
    if isinstance(value, cst.Integer):
        return True
    if not isinstance(value, cst.Call):
        return False
    name = (dotted(value.func) or "").rpartition(".")[2]
    return name == "device_count" or (name == "min" and all(_is_number(arg.value) for arg in value.args))


def _inits(plan: Plan, init_names: frozenset[str]) -> list[cst.Call]:
    return [call for call in plan.tree.calls if plan.imports.names(call.func) & init_names]


_WORLD_SIZE = 3
"""Where ``init_process_group`` takes the world size."""


def _is_of_the_group(plan: Plan, place: Place, init_names: frozenset[str]) -> bool:
    """Whether the count is the world size of the group, and not that of one node among several."""
    if plan.facts.get("spawned_nodes") or mentioned(plan):
        return False
    sizes = [(argument(call, _WORLD_SIZE, "world_size"), plan.function_of(call)) for call in _inits(plan, init_names)]
    if any(size is None for size, _ in sizes):
        sizes = [(size, function) for size, function in sizes if size is not None] + _sizes_of_environment(plan)
    return bool(sizes) and all(
        size is not None and _leads_to(plan, size, function, place, 4) for size, function in sizes
    )


def _sizes_of_environment(plan: Plan) -> list[tuple[Node | None, Function]]:
    """What the script sets ``WORLD_SIZE`` to for a group that reads it, without the ``str(…)`` around it."""
    found: list[tuple[Node | None, Function]] = []
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Assign) or not isinstance(node.targets[0].target, cst.Subscript):
            continue
        target = node.targets[0].target
        if "os.environ" in plan.imports.names(target.value) and "WORLD_SIZE" in plan.code(target.slice[0]):
            text = isinstance(node.value, cst.Call) and dotted(node.value.func) == "str" and len(node.value.args) == 1
            found.append((node.value.args[0].value if text else node.value, statement.function))  # type: ignore[attr-defined]
    return found


def _leads_to(plan: Plan, value: Node, function: Function, place: Place, depth: int) -> bool:
    """Whether an expression is the variable, under its own name or as the parameter that got it."""
    found = plan.flow.place(value, function)
    if found is None or depth == 0:
        return False
    bindings = [b for b in plan.flow.by_place.get(found, ()) if b.index is None]
    return found == place or (
        bool(bindings) and all(_leads_to(plan, b.value, b.function, place, depth - 1) for b in bindings)
    )


def _readers(plan: Plan, place: Place) -> list[Node]:
    """Where the variable stands, its assignment included; names of parameters are others."""
    found: list[Node] = []
    for node, statement in plan.tree.statement_of.items():
        name = node.value if isinstance(node, cst.Name) else node.attr.value if isinstance(node, cst.Attribute) else ""
        above = plan.tree.parent.get(node)
        labels = above.name if isinstance(above, cst.Param) else above.keyword if isinstance(above, cst.Arg) else None
        if name == place[2] and node is not labels and plan.flow.place(node, statement.function) == place:
            found.append(node)
    return found


def _say(plan: Plan, count: Node, call: cst.Call) -> None:
    """A count of processes that follows from something else than the devices there are has to be given to the launcher."""
    function = plan.function_of(call)
    values = [count]
    if isinstance(count, cst.Name):
        place = plan.flow.variable(count.value, function)
        values = [b.value for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"] or values
    for value in values:
        if isinstance(value, cst.Call) and dotted(value.func) == "len":
            plan.todo("MG202", call, f"start exactly {plan.code(value)} processes, and choose devices with CUDA_VISIBLE_DEVICES",
                      "the launcher decides how many processes there are; each uses the device of LOCAL_RANK")  # fmt: skip


def _forget(plan: Plan, count: Node, call: cst.Call) -> bool:
    """Remove ``world_size = torch.cuda.device_count()`` where only the spawn read it; tell whether that is so."""
    if not isinstance(count, cst.Name):
        return False
    function = plan.function_of(call)
    place = plan.flow.variable(count.value, function)
    bindings = [b for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"]
    if len(bindings) != 1 or bindings[0].function is not function:
        return False
    made = bindings[0].value
    if not isinstance(made, cst.Call) or not (dotted(made.func) or "").endswith("device_count"):
        return False
    inside = {*descendants(call), *descendants(bindings[0].statement.node)}
    if any(node not in inside for node in _readers(plan, place)):
        return False
    plan.edits.remove(bindings[0].statement.node)
    plan.converted(
        "MG202", bindings[0].statement, f"{count.value} removed: nothing else reads it", "the launcher decides"
    )
    return True
