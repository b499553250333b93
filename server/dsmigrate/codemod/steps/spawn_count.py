"""MG202: the number of processes that ``mp.spawn`` started is the launcher's now, wherever the script reads it."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.callables import spawned
from dsmigrate.codemod.flow import Binding, Place, argument
from dsmigrate.codemod.launch import option_behind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.managers import mentioned
from dsmigrate.codemod.tree import Function, Node, descendants


def launcher_counts(plan: Plan, count: Node, call: cst.Call, init_names: frozenset[str]) -> None:
    """Let what reads the number of processes of a spawn agree with the processes there are."""
    if _forget(plan, count, call):
        return
    _say(plan, count, call)
    if plan.facts.get("spawned_nodes"):
        _say_nodes(plan, count, call)
        return
    if counts_devices(count):
        _follow_devices(plan, call)
    count, function = _origin(plan, count, plan.function_of(call))
    place = plan.flow.place(count, function)
    if place is None or not _is_of_the_group(plan, place, init_names, _packed(plan, call)):
        return
    calls = [call, *_inits(plan, init_names)]
    _take(plan, count, place, calls)
    _ask(plan, count, place, calls)


def counts_devices(node: Node) -> bool:
    """``torch.cuda.device_count()``."""
    return isinstance(node, cst.Call) and not node.args and (dotted(node.func) or "").endswith(".device_count")


def _follow_devices(plan: Plan, call: cst.Call) -> None:
    """One process for each device there was: what is multiplied or divided by that number follows the launcher's."""
    inside = set(descendants(call))
    for other in plan.tree.calls:
        above = plan.tree.parent.get(other)
        scales = isinstance(above, cst.AugAssign) or (
            isinstance(above, cst.BinaryOperation)
            and isinstance(above.operator, cst.Multiply | cst.Divide | cst.FloorDivide)
        )
        if scales and counts_devices(other) and other not in inside | plan.handled:
            plan.need("os")
            plan.handled.add(other)
            plan.edits.replace(other, f'int(os.environ.get("WORLD_SIZE", {plan.code(other)}))')
            plan.converted("MG202", other, f"{plan.code(other)} → the number of processes that the launcher started",
                           "there was one process for each device")  # fmt: skip


def _say_nodes(plan: Plan, count: Node, call: cst.Call) -> None:
    """On several nodes the parent's number of devices stays: what it works out needs as many processes on each."""
    function = plan.function_of(call)
    place = plan.flow.place(count, function)
    values = [b.value for b in plan.flow.by_place.get(place, ())] if place is not None else []
    if len(values) != 1 or not counts_devices(values[0]):
        return
    for statement in function.statements:
        node = statement.node
        if not isinstance(node, cst.Assign | cst.AugAssign) or node.value is values[0]:
            continue
        target = dotted(node.target if isinstance(node, cst.AugAssign) else node.targets[0].target) or ""
        reads = any(plan.code(sub) == plan.code(count) for sub in descendants(node.value))
        scales = isinstance(node, cst.AugAssign) or isinstance(node.value, cst.BinaryOperation | cst.Call)
        if reads and scales and not target.endswith("world_size"):
            plan.todo("MG202", statement, f"start exactly {plan.code(values[0])} processes on each node: this is worked out for that many",
                      "the launcher decides how many processes there are")  # fmt: skip
            return


def _origin(plan: Plan, count: Node, function: Function) -> tuple[Node, Function]:
    """The variable that a parameter gets its value from, through the functions that hand it on."""
    for _ in range(_HOPS):
        place = plan.flow.place(count, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        if (
            len(bindings) != 1
            or bindings[0].kind == "assign"
            or not isinstance(bindings[0].value, cst.Name | cst.Attribute)
        ):
            break
        count, function = bindings[0].value, bindings[0].function
    return count, function


_HOPS = 4


def size_of_the_group(plan: Plan, size: Node, call: cst.Call) -> bool:
    """Let a world size that the whole file reads agree with the launcher; tell whether it is one.

    An assignment beside the group would make a name of the function's own, and reach none of the others.
    """
    function = plan.function_of(call)
    place = plan.flow.place(size, function)
    of_the_file = isinstance(size, cst.Name) and place is not None and place[1] == id(function.top)
    if not of_the_file or place is None or function.is_module or place[2] in function.global_names:
        return False
    _take(plan, size, place, [call])
    if not plan.facts.get("spawned"):
        _ask(plan, size, place, [call])
    return True


def _take(plan: Plan, count: Node, place: Place, calls: list[cst.Call]) -> None:
    """Take the launcher's number where a count is made, if anything but ``calls`` reads it."""
    made = _made(plan, place)
    known = not made or place in plan.facts.get("launcher_counts", ())
    known = known or option_behind(plan, count, plan.function_of(calls[0])) is not None
    if known or not all(_is_number(b.value) for b in made) or not _is_read_beside(plan, place, made, calls):
        return
    plan.need("os")
    plan.facts.setdefault("launcher_counts", set()).add(place)
    for binding in made:
        value = plan.code(binding.value)
        plan.edits.replace(binding.value, f'int(os.environ.get("WORLD_SIZE", {value}))')
        plan.converted("MG202", binding.statement, f"{plan.code(count)} is the number of processes that the launcher started",
                       "what is worked out from it has to agree with the processes there are")  # fmt: skip


def _is_read_beside(plan: Plan, place: Place, made: list[Binding], calls: list[cst.Call]) -> bool:
    inside = {sub for binding in made for sub in descendants(binding.statement.node)}
    inside = inside.union(*(_handed(call) for call in calls))
    return any(node not in inside for node in _readers(plan, place))


def _handed(call: cst.Call) -> set[Node]:
    """The arguments of a call, also those in ``args=(…)``, but nothing inside of them."""
    packed = [arg.value for arg in call.args]
    return {*packed, *(e.value for value in packed if isinstance(value, cst.Tuple | cst.List) for e in value.elements)}


def _ask(plan: Plan, count: Node, place: Place, calls: list[cst.Call]) -> None:
    if _is_unknown(plan, count, place, calls):
        plan.todo("MG202", calls[0], f"start exactly {plan.code(count)} processes: more than the process group reads this number",
                  "what is worked out from it has to agree with the processes there are")  # fmt: skip


def _is_unknown(plan: Plan, count: Node, place: Place, calls: list[cst.Call]) -> bool:
    """Whether a count that others read is neither the launcher's now, nor an option of the launch line, nor asked for."""
    bindings = [b for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"]
    asked = any(isinstance(b.value, cst.Call) and dotted(b.value.func) == "len" for b in bindings)
    if (
        asked
        or place in plan.facts.get("launcher_counts", ())
        or (bindings and all(_is_number(b.value) for b in bindings))
    ):
        return False
    option = option_behind(plan, count, plan.function_of(calls[0]))
    return option is None and _is_read_beside(plan, place, bindings, calls)


def is_launchers(plan: Plan, value: Node, function: Function) -> bool:
    """Whether an expression names a count that takes the launcher's number where it is made."""
    return plan.flow.place(value, function) in plan.facts.get("launcher_counts", ())


def _made(plan: Plan, place: Place) -> list[Binding]:
    """The assignments of a variable; none where it has other values too, or something is added to it."""
    bindings = plan.flow.by_place.get(place, [])
    added = any(
        isinstance(s.node, cst.AugAssign) and plan.flow.place(s.node.target, s.function) == place
        for s in plan.tree.statements
    )
    plain = not added and all(b.kind == "assign" and b.index is None for b in bindings)
    return list(bindings) if plain else []


def _is_number(value: Node) -> bool:
    """A written-out number, or the number of devices, alone or as the most there may be."""
    if isinstance(value, cst.IfExp):
        return _is_number(value.body) and _is_number(value.orelse)
    if isinstance(value, cst.Integer):
        return value.evaluated_value > 0
    if not isinstance(value, cst.Call):
        return False
    name = (dotted(value.func) or "").rpartition(".")[2]
    return name == "device_count" or (name == "min" and all(_is_number(arg.value) for arg in value.args))


def _inits(plan: Plan, init_names: frozenset[str]) -> list[cst.Call]:
    return [call for call in plan.tree.calls if plan.imports.names(call.func) & init_names]


_WORLD_SIZE = 3
"""Where ``init_process_group`` takes the world size."""


_Given = dict[Place, tuple[Node, Function]]


def _packed(plan: Plan, call: cst.Call) -> _Given:
    """What the worker's parameters get from a tuple that was made before the spawn."""
    worker, packed = argument(call, 0, "fn"), argument(call, 1, "args")
    function = plan.function_of(call)
    place = plan.flow.place(packed, function) if isinstance(packed, cst.Name) else None
    made = [] if place is None else _made(plan, place)
    if len(made) != 1 or made[0].function is not function:
        return {}
    return {place: (value, function) for place, value in spawned(plan.flow, worker, made[0].value, function)[1]}


def _is_of_the_group(plan: Plan, place: Place, init_names: frozenset[str], packed: _Given) -> bool:
    """Whether the count is the world size of the group, and not that of one node among several."""
    if plan.facts.get("spawned_nodes") or mentioned(plan):
        return False
    sizes = [(argument(call, _WORLD_SIZE, "world_size"), plan.function_of(call)) for call in _inits(plan, init_names)]
    if any(size is None for size, _ in sizes):
        sizes = [(size, function) for size, function in sizes if size is not None] + _sizes_of_environment(plan)
    return bool(sizes) and all(
        size is not None and _leads_to(plan, size, function, place, packed, 4) for size, function in sizes
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


def _leads_to(plan: Plan, value: Node, function: Function, place: Place, packed: _Given, depth: int) -> bool:
    """Whether an expression is the variable, under its own name or as the parameter that got it."""
    found = plan.flow.place(value, function)
    if found is None or depth == 0:
        return False
    if found == place:
        return True
    values = [(b.value, b.function) for b in plan.flow.by_place.get(found, ()) if b.index is None]
    values += [packed[found]] if found in packed else []
    if not values:  # what a worker is handed out of sight
        return found[1] == id(function)
    return all(_leads_to(plan, *given, place, packed, depth - 1) for given in values)


def _readers(plan: Plan, place: Place) -> list[Node]:
    """Where the variable stands, its assignment included; names of parameters are others."""
    found: list[Node] = []
    for node, statement in plan.tree.statement_of.items():
        name = node.value if isinstance(node, cst.Name) else node.attr.value if isinstance(node, cst.Attribute) else ""
        if isinstance(node, cst.Subscript):
            name = place[2]
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
    inside = {*_handed(call), *descendants(bindings[0].statement.node)}
    if any(node not in inside for node in _readers(plan, place)):
        return False
    plan.edits.remove(bindings[0].statement.node)
    plan.converted(
        "MG202", bindings[0].statement, f"{count.value} removed: nothing else reads it", "the launcher decides"
    )
    return True
