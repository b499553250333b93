"""How the original script started its processes: by itself, and then how many, or through whoever called it."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.launch import DEVICES, is_switch, option_behind, spelling
from dsmigrate.codemod.model import Start
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.options import option_calls, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_MPI = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")


def start_of(plan: Plan) -> Start:
    """What the original did to start its processes; see ``Start``."""
    texts = [node.value for call in plan.tree.calls for node in descendants(call) if isinstance(node, cst.SimpleString)]
    texts += [plan.code(s.node) for s in plan.tree.statements if isinstance(s.node, cst.Assign | cst.AnnAssign)]
    mentioned = [name for name in ("SLURM_PROCID", *_MPI) if any(name in text for text in texts)]
    basic = Start(
        local_rank=bool(plan.facts.get("takes_local_rank")),
        slurm="SLURM_PROCID" in mentioned,
        mpi=bool(plan.facts.get("initialised")) and any(name in _MPI for name in mentioned),
    )
    spawns = [call for call in plan.tree.calls if plan.imports.names(call.func) & set(SPAWNERS)]
    if not spawns:
        return basic
    counts = {_count(plan, call) for call in spawns}
    count, default = counts.pop() if len(counts) == 1 else ("", "")
    switches: dict[str, None] = {}
    unsure = False
    for call in spawns:
        found = _conditions(plan, call, count)
        unsure = unsure or found is None
        switches |= dict.fromkeys(found or ())
    return replace(
        basic,
        spawned=True,
        count=count,
        default=default,
        switches=tuple(switches),
        unsure=unsure,
        nodes=bool(plan.facts.get("spawned_nodes")),
    )


def _count(plan: Plan, call: cst.Call) -> tuple[str, str]:
    """The number of processes per node as ``Start`` has it, and the default of the option that it is."""
    node = argument(call, 2, "nprocs")
    return ("1", "") if node is None else _meaning(plan, node, plan.function_of(call), 5)


def _meaning(plan: Plan, node: Node, function: Function, depth: int) -> tuple[str, str]:
    if depth == 0:
        return "", ""
    if isinstance(node, cst.Integer):
        return str(node.evaluated_value), ""
    if isinstance(node, cst.Call):
        last = (dotted(node.func) or "").rpartition(".")[2]
        if last == "device_count" and not node.args:
            return DEVICES, ""
        if last == "int" and len(node.args) == 1:
            return _meaning(plan, node.args[0].value, function, depth - 1)
        return "", ""
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if isinstance(node, cst.Attribute) and not bindings:
        return _option(plan, node)
    if isinstance(node, cst.Name | cst.Attribute) and not _is_added_to(plan, node, function):
        found = {
            ("", "") if b.index is not None else _meaning(plan, b.value, b.function, depth - 1)
            for b in bindings
        }  # fmt: skip
        if isinstance(node, cst.Attribute) and _option(plan, node)[0]:
            return "", ""  # an option that the script overwrites on some paths
        return found.pop() if len(found) == 1 else ("", "")
    return "", ""


def _option(plan: Plan, node: cst.Attribute) -> tuple[str, str]:
    calls = [call for call in option_calls(plan) if option_name(call) == node.attr.value]
    if len(calls) != 1:
        return "", ""
    default = argument(calls[0], None, "default")
    text = ""
    if isinstance(default, cst.Integer):
        text = str(default.evaluated_value)
    elif isinstance(default, cst.Call) and (dotted(default.func) or "").endswith("device_count") and not default.args:
        text = DEVICES
    return spelling(calls[0]), text


def _is_added_to(plan: Plan, node: Node, function: Function) -> bool:
    place = plan.flow.place(node, function)
    return any(
        isinstance(s.node, cst.AugAssign) and plan.flow.place(s.node.target, s.function) == place
        for s in plan.tree.statements
    )


def _conditions(plan: Plan, call: cst.Call, count: str) -> list[str] | None:
    """The switches that a spawn stands behind; None where it depends on something else."""
    statement = plan.tree.statement(call)
    tests = _tests(statement)
    for caller in plan.flow.callers.get(statement.function, ()):
        tests += _tests(plan.tree.statement(caller))
    found: list[str] = []
    for test, branch, function in tests:
        option = option_behind(plan, test, function) if branch == "body" else None
        if option is not None and is_switch(option):
            found.append(spelling(option))
        elif not _is_about_the_count(plan, test, branch, count, function):
            return None
    return found


def _tests(statement: Statement) -> list[tuple[Node, str, Function]]:
    found: list[tuple[Node, str, Function]] = []
    branch = statement.branch
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If):
            found.append((outer.node.test, branch, statement.function))
        branch = outer.branch
    return found


def _is_about_the_count(plan: Plan, test: Node, branch: str, count: str, function: Function) -> bool:
    """``if __name__ == "__main__"``, or a test whose other side trains with one process for a count of one."""
    text = plan.code(test)
    if "__name__" in text and "__main__" in text:
        return branch == "body"
    if branch != "body" or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    comparison = test.comparisons[0]
    return (
        isinstance(comparison.operator, cst.GreaterThan)
        and isinstance(comparison.comparator, cst.Integer)
        and comparison.comparator.evaluated_value == 1
        and bool(count)
        and _meaning(plan, test.left, function, 5)[0] == count
    )
