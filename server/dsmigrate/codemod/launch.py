"""The commands that start the converted script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.model import DEVICES, Start
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.needed_arguments import needed_arguments
from dsmigrate.codemod.options import option_calls, option_default, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps import managers
from dsmigrate.codemod.tree import Function, Node, descendants

PROCESSES = 2


def commands(plan: Plan, path: str, start: Start) -> tuple[str, ...]:
    """One command per launcher, for as many processes as the script started by itself, else for two on one machine.

    A number that is written out, or an option's default, is that of the command; one for each device is the launcher's to count.

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
    name = (
        f"-m {module}"
        if module
        else shlex.quote(f"./{path}" if path.startswith("-") else path)
        if path != "-"
        else "train.py"
    )
    known = plan.facts.get("launch_options", ())
    needed = [item for item in needed_arguments(plan) if not any(item.option == flag.split()[0] for flag in known)]
    plan.facts["placeholders"] = tuple(dict.fromkeys(item.placeholder for item in needed))
    tail = " ".join((name, *(item.text for item in needed), *known))
    there = f"cd {shlex.quote(folder)} && " if folder else ""
    processes = _processes(start.count, start.default, plan.facts.get("option_count", ""))
    manager = plan.facts.get("manager")
    if manager is not None:
        return (there + managers.command(plan, manager, processes, tail),)
    of_devices = DEVICES in (start.count, start.default, plan.facts.get("option_count"))
    torchrun = f"{there}torchrun --nproc_per_node {'gpu' if of_devices else processes} {tail}"
    if _asks_torchrun(plan):
        return (torchrun,)
    deepspeed = tail.replace("-m ", "--module ", 1) if module else tail
    number = "" if of_devices else f"--num_gpus {processes} "
    return (torchrun, f"{there}deepspeed {number}--no_local_rank {deepspeed}")


def _processes(*numbers: str) -> int:
    """The first of some texts that is a number of processes."""
    return next((int(text) for text in numbers if text.isdecimal() and int(text)), PROCESSES)


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
                default = argument(option, None, "default")
                number = plan.code(default) if default is not None else ""
                if not number.endswith("device_count()"):
                    plan.facts["option_count"] = number
                    wanted[spelling(option)] = f"{spelling(option)} {_processes(number)}"
            elif count is not None:
                plan.facts["option_count"] = _listed(plan, count, plan.function_of(call))
    for statement in starts:
        branch = statement.branch
        for outer in statement.enclosing():
            if isinstance(outer.node, cst.If) and branch == "body":
                option = option_behind(plan, outer.node.test, statement.function)
                if option is not None and is_switch(option):
                    wanted[spelling(option)] = spelling(option)
            branch = outer.branch
    plan.facts["launch_options"] = tuple(wanted.values())


def _listed(plan: Plan, count: Node, function: Function) -> str:
    """How many devices an option names by its default, for ``len(args.gpus.split(","))`` as the number of processes.

    ``DEVICES`` for the devices there are, and one process where there is none.
    """
    made = [branch for value in _values(plan, count, function) for branch in _branches(value)]
    if {plan.code(value).rpartition(".")[2] for value in made} == {"1", "device_count()"}:
        return DEVICES
    lists = [value.args[0].value for value in made if isinstance(value, cst.Call) and dotted(value.func) == "len"]
    for listed in lists:
        for value in _values(plan, listed, function):
            options = {sub.attr.value for sub in descendants(value) if isinstance(sub, cst.Attribute)}
            defaults = [option_default(plan, name) for name in options - {"split"}]
            texts = [text for text in defaults if isinstance(text, str) and text]
            if len(texts) == 1 and '.split(",")' in plan.code(value).replace("'", '"'):
                return str(texts[0].count(",") + 1)
    return ""


def _branches(value: Node) -> list[Node]:
    return [*_branches(value.body), *_branches(value.orelse)] if isinstance(value, cst.IfExp) else [value]


def _values(plan: Plan, node: Node, function: Function) -> list[Node]:
    """An expression, or what the variable that it names is set to."""
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return [b.value for b in bindings if b.index is None] or [node]


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
