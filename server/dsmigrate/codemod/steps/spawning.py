"""MG202, MG207: ``mp.spawn`` makes room for the launcher."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.spawn_count import launcher_counts
from dsmigrate.codemod.tree import Node, Statement, descendants


def is_spawned(plan: Plan) -> bool:
    """Whether the script starts its processes by itself."""
    return any(plan.imports.names(call.func) & set(SPAWNERS) for call in plan.tree.calls)


def spawn_call(plan: Plan, call: cst.Call, init_names: frozenset[str]) -> None:
    """Replace ``mp.spawn(worker, …)`` by one call of the worker."""
    statement = plan.tree.statement(call)
    worker = argument(call, 0, "fn")
    packed = argument(call, 1, "args")
    processes = argument(call, 2, "nprocs")
    if worker is None or not isinstance(statement.node, cst.Expr) or statement.node.value is not call:
        raise plan.refuse(
            "MG913", statement, "the result of mp.spawn is used", "the launcher replaces spawn and returns no context"
        )
    count = plan.code(processes) if processes is not None else None
    multi_node = _is_multi_node(plan, worker, statement)
    size = 'int(os.environ["LOCAL_WORLD_SIZE"])' if multi_node else 'int(os.environ["WORLD_SIZE"])'
    texts: list[str] = []
    if packed is None:
        pass
    elif isinstance(packed, cst.Tuple | cst.List):
        for element in packed.elements:
            text = plan.code(element.value)
            same = count is not None and text == count
            texts.append(size if same else f"*{text}" if isinstance(element, cst.StarredElement) else text)
    else:
        texts.append(f"*{plan.code(packed)}")
    plan.need("os")
    arguments = ", ".join(['int(os.environ["LOCAL_RANK"])', *texts])
    plan.edits.replace(call, f"{plan.code(worker)}({arguments})")
    if multi_node:
        plan.edits.insert_before(
            statement.line_node,
            "# Set by torchrun; the deepspeed launcher calls it LOCAL_SIZE.",
            'os.environ.setdefault("LOCAL_WORLD_SIZE", os.environ.get("LOCAL_SIZE", "1"))',
        ) if size in texts else None
    plan.handled.add(call)
    plan.facts["spawned"] = True
    plan.facts["spawned_nodes"] = multi_node
    if processes is not None:
        launcher_counts(plan, processes, call, init_names)
    plan.converted("MG202", statement, "mp.spawn → one call per process of the launcher",
                   "DeepSpeed needs the launcher's environment; the process index is LOCAL_RANK")  # fmt: skip
    _runs_in_every_process(plan, statement)


_HEAVY = (
    "dataset",
    "download",
    "prepare",
    "process",
    "makedirs",
    "mkdir",
    "rmtree",
    "write",
    "save",
    "dump",
    "load",
    "reddit",
)


_LIGHT = ("parse_args", "add_argument", "ArgumentParser", "device_count", "is_available", "print", "get", "int", "str", "len",
          "setdefault", "set_start_method", "strftime", "join", "format", "warn", "items")  # fmt: skip


def _runs_in_every_process(plan: Plan, spawn: Statement) -> None:
    """What stood before the spawn ran once, in the parent; now every process runs it."""
    seeders: list[cst.Call] = []
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if statement.function is not spawn.function or statement.order >= spawn.order or call in plan.handled:
            continue
        if isinstance(statement.node, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            continue
        last = (dotted(call.func) or "").rpartition(".")[2]
        if last in _LIGHT or not last or (spawn.function.is_module and statement.up is None):
            continue
        if "signal.signal" in plan.imports.names(call.func):
            plan.kept("MG207", statement, "this handler stood in the parent only; now every rank has it, and the launcher, which the "
                      "scheduler's signals reach first, has none: handle them in the script that starts the launcher",
                      "spawned workers inherit no handler of Python")  # fmt: skip
        elif _seeds(plan, call):
            seeders.append(call)
        elif any(word in last.lower() for word in _HEAVY) or _made_once(plan, call, statement):
            shown = " ".join(plan.code(statement.node).split())
            plan.todo(
                "MG207",
                statement,
                f"`{shown if len(shown) < _SHOWN else shown[:_SHOWN] + '…'}` ran once in the parent and was shared; now every process "
                "runs it: let rank 0 go first where it writes or downloads, and seed it where it is random",
                "the launcher starts the whole script in every process",
            )
    if seeders:
        names = ", ".join(dict.fromkeys(dotted(call.func) or "" for call in seeders))
        plan.kept("MG207", seeders[0], f"{names} seeded the parent only: spawned workers inherit no seed, and each drew numbers of its "
                  "own. Now every process is seeded, and alike: all ranks draw the same numbers (weights, dropout, augmentation) "
                  "until the worker seeds itself; add the rank to the seed there for numbers that differ by rank",
                  "the launcher runs the whole script in each process")  # fmt: skip


_SHOWN = 50
_SEEDER = re.compile(r"^(?:manual_)?seed(?:_all)?$|seed_everything", re.IGNORECASE)


def _seeds(plan: Plan, call: cst.Call) -> bool:
    """Whether a call seeds the global random numbers: by its name, or because a function of the script that it runs does."""
    callee = plan.flow.callee(call)
    if callee is not None:
        return any(_seeds_globally(inner) for inner in plan.tree.calls if plan.function_of(inner) is callee)
    return _seeds_globally(call) or "seed" in (dotted(call.func) or "").rpartition(".")[2].lower()


def _seeds_globally(call: cst.Call) -> bool:
    """``torch.manual_seed(3)``, ``random.seed(3)``; not ``torch.Generator().manual_seed(3)``, which is a value."""
    text = dotted(call.func)
    return text is not None and bool(_SEEDER.match(text.rpartition(".")[2]))


_PLAIN_MODULES = ("os", "sys", "argparse", "time", "datetime", "json", "yaml", "pathlib", "math", "logging", "socket",
                  "torch.cuda", "torch.device", "torch.multiprocessing", "warnings", "platform", "shlex", "torch.arange", "torch.zeros",
                  "torch.ones", "torch.full", "torch.eye", "torch.linspace", "torch.tensor")  # fmt: skip


def _made_once(plan: Plan, call: cst.Call, statement: Statement) -> bool:
    """Whether a value that another module computes is kept in a variable: it may be random, large, or written to disk."""
    if not isinstance(statement.node, cst.Assign):
        return False
    names = plan.imports.names(call.func)
    text = dotted(call.func)
    if text is None or not plan.imports.meanings(text.partition(".")[0], statement.function):
        return False
    if any(name == m or name.startswith(m + ".") for name in names for m in _PLAIN_MODULES):
        return False
    return not _is_address(plan, statement, statement.node.targets[0].target)


def _is_address(plan: Plan, made: Statement, target: Node) -> bool:
    """Whether only ``init_process_group`` reads a value, where the launcher's address takes its place."""
    place = plan.flow.place(target, made.function)
    if place is None:
        return False
    readers: list[bool] = []
    for node, statement in plan.tree.statement_of.items():
        if node is target or not isinstance(node, cst.Name | cst.Attribute):
            continue
        if plan.flow.place(node, statement.function) == place:
            calls = [above for above in plan.tree.ancestors(node) if isinstance(above, cst.Call)]
            readers.append(any((dotted(call.func) or "").endswith("init_process_group") for call in calls))
    return bool(readers) and all(readers)


def _is_multi_node(plan: Plan, worker: Node, statement: Statement) -> bool:
    """Whether the worker works out its rank from a node rank (``rank = node_rank * gpus + gpu``)."""
    function = plan.flow.function_named(worker, statement.function)
    if function is None:
        return False
    index = plan.flow.positional(function)[:1]
    for inner in function.statements:
        node = inner.node
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.BinaryOperation):
            target = dotted(node.targets[0].target) or ""
            reads = {sub.value for sub in descendants(node.value) if isinstance(sub, cst.Name)}
            if (
                target.rpartition(".")[2].lower().endswith("rank")
                and isinstance(node.value.operator, cst.Add)
                and set(index) & reads
            ):
                return True
    return False
