"""MG2xx: the process group, the launcher, ranks and the command-line options around them."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.accelerators import on_cpu
from dsmigrate.codemod.steps.after_spawn import parent_is_gone
from dsmigrate.codemod.steps.alone import refuses_ranks, started_alone
from dsmigrate.codemod.steps.cpu_collectives import say_no_gloo
from dsmigrate.codemod.steps.managers import Manager, comes_first, mentioned, needed, needs_launcher
from dsmigrate.codemod.steps.own_processes import own_processes
from dsmigrate.codemod.steps.rank_options import convert_rank_options
from dsmigrate.codemod.steps.spawn_count import is_launchers, size_of_the_group
from dsmigrate.codemod.steps.spawning import ON_NODES, is_spawned, spawn_call
from dsmigrate.codemod.tree import Node, Statement

INIT_NAMES = frozenset(
    {
        "torch.distributed.init_process_group",
        "torch.distributed.distributed_c10d.init_process_group",
        "init_process_group",
    }
)
_ENVIRONMENT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "LOCAL_WORLD_SIZE")

IDEAS = (
    Idea(
        "MG201",
        "init_process_group becomes deepspeed.init_distributed",
        "DeepSpeed sets up the process group, with the script's backend, time-out, rank and world size.",
        "DeepSpeed keeps its own communication layer beside torch.distributed and must set it up; torch.distributed "
        "works as before afterwards.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.CONVERTED,
    ),
    Idea(
        "MG202",
        "mp.spawn becomes the launcher",
        "The worker is called once in each process that torchrun or the deepspeed launcher starts.",
        "DeepSpeed reads RANK, WORLD_SIZE and LOCAL_RANK from the environment, which only a launcher sets. The process "
        "index becomes LOCAL_RANK; arguments that were the number of processes become the launcher's.",
        "engine-semantics 17",
        Kind.CONVERTED,
    ),
    Idea(
        "MG203",
        "MASTER_ADDR and friends become defaults",
        "Environment variables that the launcher sets are no longer overwritten by the script.",
        "Under torchrun every process is a client of a store at the launcher's port; another port leaves all of them "
        "waiting for a server that nobody starts.",
        "torch/distributed/elastic, TORCHELASTIC_USE_AGENT_STORE",
        Kind.CONVERTED,
    ),
    Idea(
        "MG204",
        "--local_rank works under both launchers",
        "The option's default comes from LOCAL_RANK, and both spellings are accepted.",
        "The deepspeed launcher passes --local_rank=N, torchrun sets LOCAL_RANK and passes nothing.",
        "https://github.com/deepspeedai/DeepSpeed/issues/131",
        Kind.CONVERTED,
    ),
    Idea(
        "MG205",
        "The process group is made by deepspeed.initialize",
        "A script that only sets up the group on some paths still runs on the others, under a launcher: initialize makes it.",
        "Under a launcher deepspeed.initialize calls init_distributed itself if nothing did before.",
        "deepspeed/__init__.py, initialize",
        Kind.KEPT,
    ),
    Idea(
        "MG207",
        "Code before the spawn runs in every process",
        "What the parent did once before mp.spawn (downloads, seeds, files) now happens in each launched process.",
        "The launcher starts the whole script in every process. Downloads and writes can race. Spawned workers inherit no "
        "seed of the parent and each draw other numbers; a seed that is set before the spawn now reaches every process, so "
        "that all ranks draw the same numbers (dropout, augmentation) unless the worker seeds itself with its rank.",
        "torch.multiprocessing.spawn; measured with torch 2.13: torch.initial_seed() of two spawned workers",
        Kind.TODO,
    ),
    Idea(
        "MG206",
        "Ranks from SLURM and MPI are handed to DeepSpeed",
        "RANK, WORLD_SIZE and LOCAL_RANK are set from the script's own numbers where srun or mpirun starts the processes; "
        "where the script needs their variables, the launch command is theirs.",
        "DeepSpeed reads its ranks from these variables, and a launcher sets none of SLURM's or MPI's.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.CONVERTED,
    ),
)

_KEPT_KEYWORDS = {"backend": "dist_backend", "init_method": "init_method", "timeout": "timeout", "rank": "rank",
                  "world_size": "world_size"}  # fmt: skip
_POSITIONS = ("backend", "init_method", "timeout", "world_size", "rank", "store", "group_name")


def run(plan: Plan) -> None:
    """Convert process-group set-up, spawning, environment variables and rank options."""
    spawns = [call for call in plan.tree.calls if plan.imports.names(call.func) & set(SPAWNERS)]
    for call in spawns:
        spawn_call(plan, call, INIT_NAMES)
    parent_is_gone(plan, [plan.tree.statement(call) for call in spawns])
    for call in plan.tree.calls:
        if plan.imports.names(call.func) & INIT_NAMES:
            _init(plan, call)
    own_processes(plan, INIT_NAMES)
    on_cpu(plan, [call for call in plan.tree.calls if plan.imports.names(call.func) & INIT_NAMES])
    _environment(plan)
    convert_rank_options(plan)
    _say_who_starts(plan)
    started_alone(plan, INIT_NAMES)
    refuses_ranks(plan)
    if not plan.facts.get("initialised"):
        plan.kept("MG205", plan.wraps[0].statement, "this file sets up no process group: deepspeed.initialize does where nothing did",
                  "under a launcher it calls init_distributed itself")  # fmt: skip


def _init(plan: Plan, call: cst.Call) -> None:
    statement = plan.tree.statement(call)
    arguments: dict[str, Node] = {}
    for index, arg in enumerate(call.args):
        if arg.star and is_spawned(plan):
            raise plan.refuse(
                "MG903", statement, "init_process_group is called with star arguments", "its keywords cannot be read"
            )
        if arg.star:
            plan.kept("MG201", statement, "init_process_group stays: its keywords cannot be read here",
                      "deepspeed.initialize takes a process group that is there already")  # fmt: skip
            plan.facts["initialised"] = True
            return
        name = arg.keyword.value if arg.keyword is not None else _POSITIONS[min(index, len(_POSITIONS) - 1)]
        arguments[name] = arg.value
    if "store" in arguments and dotted(arguments["store"]) != "None":
        raise plan.refuse(
            "MG903", statement, "the process group is built on a store of its own", "init_distributed takes no store"
        )
    spawned = is_spawned(plan)
    from_slurm = bool(mentioned(plan))
    pieces: list[str] = []
    dropped: list[str] = []
    handed = _own_address(plan, arguments) if from_slurm else {}
    pieces.extend(f"{name}={text}" for name, text in handed.items())
    if handed:
        del arguments["init_method"]
    for name in ("backend", "init_method", "timeout", "rank", "world_size"):
        value = arguments.get(name)
        if value is None or (name == "timeout" and dotted(value) == "None"):
            continue
        text = plan.code(value)
        if name == "init_method" and (text.strip("\"'") == "env://" or spawned or from_slurm or _is_tcp(plan, value)):
            dropped.append(f"{name}={text}")
            continue
        if name in ("rank", "world_size"):
            if handed.get(name) != text:
                dropped.append(f"{name}={text}")
            continue
        pieces.append(f"{_KEPT_KEYWORDS[name]}={text}")
    pieces.extend(_own_timeout(plan, arguments))
    replacement = f"deepspeed.init_distributed({', '.join(pieces)})"
    plan.need("deepspeed")
    plan.edits.replace(call, replacement)
    plan.handled.add(call)
    verb = "comes" if len(dropped) == 1 else "come"
    said = f"; {', '.join(dropped)} {verb} from the launcher" if dropped else ""
    plan.converted("MG201", statement, f"init_process_group → deepspeed.init_distributed{said}",
                   "DeepSpeed sets up the process group; backend and time-out are the script's")  # fmt: skip
    say_no_gloo(plan, statement, arguments.get("backend"))
    _ranks_after(plan, call, arguments, from_slurm=from_slurm)
    plan.facts["initialised"] = True


def _own_timeout(plan: Plan, arguments: dict[str, Node]) -> list[str]:
    """The time-out that torch gives all backends but NCCL, 30 minutes; DeepSpeed's is NCCL's, 10, for all of them."""
    backend, given = arguments.get("backend"), arguments.get("timeout")
    named = isinstance(backend, cst.SimpleString) and str(backend.evaluated_value).lower() != "nccl"
    if (given is not None and dotted(given) != "None") or not (named or backend is None or dotted(backend) == "None"):
        return []
    plan.need("torch")
    return ["timeout=torch.distributed.constants.default_pg_timeout"]


def _own_address(plan: Plan, arguments: dict[str, Node]) -> dict[str, str]:
    """What a script of SLURM or MPI with an address of its own hands over: no launcher may be there to know it.

    Where the launcher took the place of a spawn, its numbers count: the manager numbers the one task that it runs in.
    """
    address = arguments.get("init_method")
    if address is None or plan.code(address).strip("\"'") == "env://":
        return {}
    plan.need("os")
    handed = {"init_method": f'None if "MASTER_ADDR" in os.environ else {plan.code(address)}'}
    spawned = is_spawned(plan)
    for name in ("rank", "world_size"):
        if name in arguments:
            handed[name] = f'int(os.environ["{name.upper()}"])' if spawned else plan.code(arguments[name])
    return {**handed, "auto_mpi_discovery": "False"}


def _say_who_starts(plan: Plan) -> None:
    """Where a script needs the variables of SLURM or MPI, or prefers them, the person has to know what starts it."""
    managers = mentioned(plan)
    if not managers or not plan.facts.get("initialised"):
        return
    where = plan.wraps[0].statement
    manager = needed(plan)
    if manager is not None:
        plan.facts["manager"] = manager
        plan.kept("MG206", where, f"{manager.command.split()[0]} goes on starting the processes: the script needs {manager.name}'s variables",
                  "neither torchrun nor the deepspeed launcher sets them")  # fmt: skip
    elif is_spawned(plan) or needs_launcher(plan):
        if (first := comes_first(plan, only_free=True)) is not None:
            plan.kept("MG206", where, f"within a job of {first.name} only: the script needs its variables beside those of the launcher",
                      f"torchrun, started by one task per node, sets none of them; {ON_NODES}")  # fmt: skip
    elif (first := comes_first(plan)) is not None:
        plan.kept("MG206", where, f"within a job of {first.name} start it with {first.command.split()[0]}: its numbers come first there, also under torchrun",
                  "every process of a launcher would see the numbers of the one task that the launcher runs in")  # fmt: skip


def _is_tcp(plan: Plan, value: Node) -> bool:
    """``tcp://`` addresses and options such as ``args.dist_url``: the launcher's rendezvous replaces them."""
    text = plan.code(value)
    return "file:" not in text


def _ranks_after(plan: Plan, call: cst.Call, arguments: dict[str, Node], *, from_slurm: bool) -> None:
    """Ranks that the script worked out by itself now come from the group that the launcher made."""
    statement = plan.tree.statement(call)
    lines: list[str] = []
    for name, getter in (("rank", "get_rank"), ("world_size", "get_world_size")):
        value = arguments.get(name)
        if value is None or not isinstance(value, cst.Name | cst.Attribute | cst.Subscript):
            continue
        text = plan.code(value)
        if is_launchers(plan, value, statement.function):
            continue
        if from_slurm or not _from_launcher(plan, value, statement):
            if name == "world_size" and not from_slurm and size_of_the_group(plan, value, call):
                continue
            lines.append(f"{text} = deepspeed.comm.{getter}()")
    if from_slurm:
        managers = mentioned(plan)
        said = " and ".join(dict.fromkeys(manager.name for manager in managers))
        sizes = [manager.size for manager in managers]
        before = []
        for variable, name, theirs, default in (
            ("RANK", "rank", [manager.rank for manager in managers], "0"),
            ("WORLD_SIZE", "world_size", sizes, "1"),
        ):
            value = arguments.get(name)
            text = f"str({plan.code(value)})" if value is not None else _first_of(theirs, default)
            before.append(f'os.environ.setdefault("{variable}", {text})')
        before.append(f'os.environ.setdefault("LOCAL_RANK", {_local_rank(plan, statement, managers)})')
        plan.need("os")
        plan.edits.insert_before(statement.line_node, *before)
        plan.converted("MG206", statement, f"RANK, WORLD_SIZE and LOCAL_RANK are set from {said}'s numbers where no launcher has set them",
                       "DeepSpeed reads its ranks from the environment")  # fmt: skip
    if lines:
        plan.edits.insert_after(statement.line_node, *lines)


def _first_of(variables: list[str], default: str) -> str:
    """The text that asks for the first of some variables that is there."""
    text = f'"{default}"'
    for variable in reversed(variables):
        text = f'os.environ.get("{variable}", {text})'
    return text


def _local_rank(plan: Plan, statement: Statement, managers: tuple[Manager, ...]) -> str:
    """The device index that the script itself chose, as text; the manager's local id where it chose none by then."""
    for call in plan.tree.calls:
        where = plan.tree.statement(call)
        if "torch.cuda.set_device" not in plan.imports.names(call.func) or not call.args:
            continue
        chosen = call.args[0].value
        if where.function is not statement.function or not isinstance(chosen, cst.Name | cst.Attribute):
            continue
        place = plan.flow.place(chosen, statement.function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        made = [b.statement.order for b in bindings if b.function is statement.function]
        if where.order < statement.order or (made and max(made) < statement.order) or (bindings and not made):
            return f"str({plan.code(chosen)})"
    local = _first_of([manager.local for manager in managers], "0")
    if any(manager.name != "SLURM" for manager in managers):  # DeepSpeed insists on MPI's own local rank
        return local
    plan.need("torch")
    return f'"0" if torch.cuda.device_count() == 1 else {local}'  # srun --gpus-per-task 1


def _from_launcher(plan: Plan, value: Node, statement: Statement, depth: int = 4) -> bool:
    """Whether a rank or size was read from the launcher's environment variables (then it is right already)."""
    text = plan.code(value)
    if any(f'"{name}"' in text or f"'{name}'" in text for name in _ENVIRONMENT):
        return True
    if depth == 0:
        return False
    place = plan.flow.place(value, statement.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    found = [b for b in bindings if b.index is None]
    return bool(found) and all(_from_launcher(plan, b.value, b.statement, depth - 1) for b in found)


def _environment(plan: Plan) -> None:
    """``os.environ["MASTER_PORT"] = …`` → ``os.environ.setdefault(…)``."""
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0].target
        if not isinstance(target, cst.Subscript) or "os.environ" not in plan.imports.names(target.value):
            continue
        key = target.slice[0].slice
        if not isinstance(key, cst.Index) or not isinstance(key.value, cst.SimpleString):
            continue
        name = str(key.value.evaluated_value)
        if name not in _ENVIRONMENT:
            continue
        plan.edits.substitute(
            node, f"{plan.code(target.value)}.setdefault({plan.code(key.value)}, {plan.code(node.value)})"
        )
        why = (
            "overwriting the launcher's rendezvous leaves the processes waiting for each other"
            if name.startswith("MASTER_")
            else "the launcher numbers the processes that it starts"
        )
        plan.converted("MG203", statement, f"{name} is only set where the launcher did not", why)
