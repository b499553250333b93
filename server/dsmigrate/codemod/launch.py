"""The commands that start the converted script."""

from __future__ import annotations

import shlex

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.options import option_calls, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps import managers
from dsmigrate.codemod.tree import Function, Node, descendants

PROCESSES = 2


def commands(plan: Plan, path: str) -> tuple[str, ...]:
    """One command per launcher, for two processes on one machine; the script's own options follow.

    A script that needs the variables of SLURM or MPI is started as before. Options that the script needs to know of being distributed (``--multiprocessing-distributed``) are part of it.
    ``--no_local_rank`` keeps the deepspeed launcher from adding an option that the script may not know.
    """
    name = shlex.quote(path) if path != "-" else "train.py"
    flags = " ".join(plan.facts.get("launch_options", ()))
    tail = f"{name} {flags}".rstrip()
    manager = plan.facts.get("manager")
    if manager is not None:
        return (managers.command(plan, manager, PROCESSES, tail),)
    torchrun = f"torchrun --nproc_per_node {PROCESSES} {tail}"
    if _asks_torchrun(plan):
        return (torchrun,)
    return (torchrun, f"deepspeed --num_gpus {PROCESSES} --no_local_rank {tail}")


_TORCHRUN_ONLY = frozenset({"LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_RUN_ID"})


def _asks_torchrun(plan: Plan) -> bool:
    """Whether the script takes from its environment what the deepspeed launcher does not set, by key and not by get."""
    return any(
        isinstance(sub, cst.SimpleString)
        and sub.evaluated_value in _TORCHRUN_ONLY
        and not isinstance(plan.tree.parent.get(sub), cst.Arg | cst.Comparison)
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement)
        for sub in descendants(statement.node)
    )


def find_options(plan: Plan) -> None:
    """Note the options that switch distributed training on, or say how many processes there are."""
    wanted: dict[str, str] = {}
    starts = [w.statement for w in plan.wraps]
    for call in plan.tree.calls:
        names = plan.imports.names(call.func)
        if names & set(SPAWNERS):
            starts.append(plan.tree.statement(call))
            count = argument(call, 2, "nprocs")
            option = option_behind(plan, count, plan.function_of(call)) if count is not None else None
            if option is not None:
                wanted[spelling(option)] = f"{spelling(option)} {PROCESSES}"
    for statement in starts:
        branch = statement.branch
        for outer in statement.enclosing():
            if isinstance(outer.node, cst.If) and branch == "body":
                option = option_behind(plan, outer.node.test, statement.function)
                if option is not None and is_switch(option):
                    wanted[spelling(option)] = spelling(option)
            branch = outer.branch
    plan.facts["launch_options"] = tuple(wanted.values())


def option_behind(plan: Plan, node: Node, function: Function, depth: int = 3) -> cst.Call | None:
    """The ``add_argument`` call behind ``args.x``, directly, through a name, or as one side of an ``or``."""
    if depth == 0:
        return None
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
        return option_behind(plan, node.left, function, depth) or option_behind(plan, node.right, function, depth)
    if isinstance(node, cst.Attribute):
        name = node.attr.value
        for call in option_calls(plan):
            if option_name(call) == name:
                return call
        for binding in plan.flow.bindings:  # args.distributed = args.world_size > 1 or args.multiprocessing_distributed
            if binding.place[0] == "n" and binding.place[2] == name and binding.index is None:
                found = option_behind(plan, binding.value, binding.function, depth - 1)
                if found is not None and is_switch(found):
                    return found
    if isinstance(node, cst.Name):
        place = plan.flow.variable(node.value, function)
        for binding in plan.flow.by_place.get(place, ()):
            if binding.index is None and isinstance(binding.value, cst.Attribute | cst.Name):
                found = option_behind(plan, binding.value, binding.function, depth - 1)
                if found is not None:
                    return found
    return None


def is_switch(call: cst.Call) -> bool:
    """Whether an option takes no value and is off unless given."""
    action = argument(call, None, "action")
    return isinstance(action, cst.SimpleString) and action.evaluated_value == "store_true"


def spelling(call: cst.Call) -> str:
    """The long form of an option, with its dashes."""
    for arg in call.args:
        if arg.keyword is None and isinstance(arg.value, cst.SimpleString):
            text = str(arg.value.evaluated_value)
            if text.startswith("--"):
                return text
    return f"--{option_name(call)}"
