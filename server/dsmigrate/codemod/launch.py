"""The commands that start the converted script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.needed_arguments import needed_arguments
from dsmigrate.codemod.options import option_calls, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps import managers
from dsmigrate.codemod.tree import Function, Node, descendants

PROCESSES = 2


def commands(plan: Plan, path: str, count: str) -> tuple[str, ...]:
    """One command per launcher, for two processes on one machine, or as many as the script wrote out (``count``).

    The script's own options follow, arguments that it does not start without first, with a placeholder for each value.
    A file that starts nothing has no command.

    A script that needs the variables of SLURM or MPI is started as before, and a module of its own package from the
    folder above the package. Options that the script needs to know of being distributed
    (``--multiprocessing-distributed``) are part of it. ``--no_local_rank`` keeps the deepspeed launcher from adding an
    option that the script may not know.
    """
    if "starts_nothing" in plan.facts:
        return ()
    folder, module = _as_module(plan, path)
    name = f"-m {module}" if module else shlex.quote(path) if path != "-" else "train.py"
    known = plan.facts.get("launch_options", ())
    needed = [item for item in needed_arguments(plan) if not any(item.option == flag.split()[0] for flag in known)]
    plan.facts["placeholders"] = tuple(dict.fromkeys(item.placeholder for item in needed))
    tail = " ".join((name, *(item.text for item in needed), *known))
    there = f"cd {shlex.quote(folder)} && " if folder else ""
    processes = int(count) if count.isdigit() else PROCESSES
    manager = plan.facts.get("manager")
    if manager is not None:
        return (there + managers.command(plan, manager, processes, tail),)
    torchrun = f"{there}torchrun --nproc_per_node {processes} {tail}"
    if _asks_torchrun(plan):
        return (torchrun,)
    deepspeed = tail.replace("-m ", "--module ", 1) if module else tail
    return (torchrun, f"{there}deepspeed --num_gpus {processes} --no_local_rank {deepspeed}")


def _as_module(plan: Plan, path: str) -> tuple[str, str]:
    """The folder to start a script from, "" for the present one, and its name as a module; both "" for a plain script.

    What imports its own package cannot be started by its path: Python then knows its folder, not the one above.
    """
    *folders, file = PurePosixPath(path).parts
    depth = max((_depth(plan, *imported) for imported in _imported_by_script(plan)), default=0)
    known = PurePosixPath(plan.tree.parts[0].path).parent.parts  # from the project's root, wherever the person is
    package = known[-depth:] or folders[-depth:]
    if depth == 0 or depth > len(package) or not all(name.isidentifier() for name in package):
        return "", ""
    above = folders[:-depth] if depth <= len(folders) else [".."] * (depth - len(folders))
    return str(PurePosixPath(*above)) if above else "", ".".join([*package, file.removesuffix(".py")])


def _depth(plan: Plan, module: str, level: int) -> int:
    """How many of the script's folders are the packages that an import takes it to be in; 0 for any other import."""
    script = plan.tree.parts[0]
    find = plan.tree.find_module
    if level or find is None:
        return level
    found = find(script, module, 0)
    if found is None:
        return 0
    own = PurePosixPath(script.path).parent.parts
    there = PurePosixPath(found.path.removesuffix("/__init__.py")).parts
    above = len(there) - len(module.split("."))  # the folders that are no packages
    return len(own) - above if own[: above + 1] == there[: above + 1] and above < len(own) else 0


def _imported_by_script(plan: Plan) -> Iterator[tuple[str, int]]:
    """The modules that the script itself imports from, with the dots of relative ones."""
    for statement in plan.tree.statements:
        node = statement.node
        if plan.tree.part_of_top[statement.function.top] is not plan.tree.parts[0]:
            continue
        if isinstance(node, cst.ImportFrom):
            yield dotted(node.module) or "", len(node.relative)
        elif isinstance(node, cst.Import):
            yield from ((dotted(alias.name) or "", 0) for alias in node.names)


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
