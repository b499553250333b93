"""MG2xx: the process group, the launcher, ranks and the command-line options around them."""

from __future__ import annotations

from functools import partial

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement, descendants
from dsmigrate.codemod.values import option_calls

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
        "A script that only sets up the group on some paths still runs on the others: initialize makes it then.",
        "Under a launcher deepspeed.initialize calls init_distributed itself if nothing did before.",
        "deepspeed/__init__.py, initialize",
        Kind.KEPT,
    ),
    Idea(
        "MG207",
        "Code before the spawn runs in every process",
        "What the parent did once before mp.spawn (downloads, seeds, files) now happens in each launched process.",
        "The launcher starts the whole script in every process. Downloads and writes can race; a seed makes all ranks alike.",
        "torch.multiprocessing.spawn",
        Kind.TODO,
    ),
    Idea(
        "MG206",
        "Ranks from SLURM are handed to DeepSpeed",
        "RANK, WORLD_SIZE and LOCAL_RANK are set from the script's own numbers where srun starts the processes.",
        "DeepSpeed reads its ranks from these variables.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.CONVERTED,
    ),
)

_KEPT_KEYWORDS = {"backend": "dist_backend", "init_method": "init_method", "timeout": "timeout", "rank": "rank",
                  "world_size": "world_size"}  # fmt: skip
_POSITIONS = ("backend", "init_method", "timeout", "world_size", "rank", "store", "group_name")


def run(plan: Plan) -> None:
    """Convert process-group set-up, spawning, environment variables and rank options."""
    for call in plan.tree.calls:
        if plan.imports.names(call.func) & INIT_NAMES:
            _init(plan, call)
        elif plan.imports.names(call.func) & set(SPAWNERS):
            _spawn(plan, call)
    _environment(plan)
    _options(plan)
    if not plan.facts.get("initialised"):
        plan.kept("MG205", plan.wraps[0].statement, "this file sets up no process group: deepspeed.initialize does where nothing did",
                  "under a launcher it calls init_distributed itself")  # fmt: skip


def _init(plan: Plan, call: cst.Call) -> None:
    statement = plan.tree.statement(call)
    arguments: dict[str, Node] = {}
    for index, arg in enumerate(call.args):
        if arg.star:
            raise plan.refuse(
                "MG903", statement, "init_process_group is called with star arguments", "its keywords cannot be read"
            )
        name = arg.keyword.value if arg.keyword is not None else _POSITIONS[min(index, len(_POSITIONS) - 1)]
        arguments[name] = arg.value
    if "store" in arguments and dotted(arguments["store"]) != "None":
        raise plan.refuse(
            "MG903", statement, "the process group is built on a store of its own", "init_distributed takes no store"
        )
    spawned = _is_spawned(plan)
    from_slurm = _mentions_slurm(plan)
    pieces: list[str] = []
    dropped: list[str] = []
    own_address = arguments.get("init_method")
    if from_slurm and own_address is not None and plan.code(own_address).strip("\"'") != "env://":
        plan.need("os")
        pieces.append(f'init_method=None if "MASTER_ADDR" in os.environ else {plan.code(own_address)}')
        pieces.extend(f"{name}={plan.code(arguments[name])}" for name in ("rank", "world_size") if name in arguments)
        pieces.append("auto_mpi_discovery=False")
        del arguments["init_method"]
    for name in ("backend", "init_method", "timeout", "rank", "world_size"):
        value = arguments.get(name)
        if value is None:
            continue
        text = plan.code(value)
        if name == "init_method" and (text.strip("\"'") == "env://" or spawned or from_slurm or _is_tcp(plan, value)):
            dropped.append(f"{name}={text}")
            continue
        if name in ("rank", "world_size"):
            dropped.append(f"{name}={text}")
            continue
        pieces.append(f"{_KEPT_KEYWORDS[name]}={text}")
    replacement = f"deepspeed.init_distributed({', '.join(pieces)})"
    plan.need("deepspeed")
    plan.edits.replace(call, replacement)
    plan.handled.add(call)
    verb = "comes" if len(dropped) == 1 else "come"
    said = f"; {', '.join(dropped)} {verb} from the launcher" if dropped else ""
    plan.converted("MG201", statement, f"init_process_group → deepspeed.init_distributed{said}",
                   "DeepSpeed sets up the process group; backend and time-out are the script's")  # fmt: skip
    _ranks_after(plan, statement, arguments, from_slurm=from_slurm)
    plan.facts["initialised"] = True


def _is_tcp(plan: Plan, value: Node) -> bool:
    """``tcp://`` addresses and options such as ``args.dist_url``: the launcher's rendezvous replaces them."""
    text = plan.code(value)
    return "file:" not in text


def _ranks_after(plan: Plan, statement: Statement, arguments: dict[str, Node], *, from_slurm: bool) -> None:
    """Ranks that the script worked out by itself now come from the group that the launcher made."""
    lines: list[str] = []
    for name, getter in (("rank", "get_rank"), ("world_size", "get_world_size")):
        value = arguments.get(name)
        if value is None or not isinstance(value, cst.Name | cst.Attribute | cst.Subscript):
            continue
        text = plan.code(value)
        if from_slurm or not _from_launcher(plan, value, statement):
            lines.append(f"{text} = deepspeed.comm.{getter}()")
    if from_slurm:
        rank, size = arguments.get("rank"), arguments.get("world_size")
        local = _slurm_local(plan, statement)
        before = []
        for variable, value in (("RANK", rank), ("WORLD_SIZE", size)):
            text = plan.code(value) if value is not None else f'os.environ["SLURM_{_SLURM[variable]}"]'
            before.append(f'os.environ.setdefault("{variable}", str({text}))')
        before.append(f'os.environ.setdefault("LOCAL_RANK", {local})')
        plan.need("os")
        plan.edits.insert_before(statement.line_node, *before)
        plan.converted("MG206", statement, "RANK, WORLD_SIZE and LOCAL_RANK are set from SLURM's numbers",
                       "DeepSpeed reads its ranks from the environment")  # fmt: skip
    if lines:
        plan.edits.insert_after(statement.line_node, *lines)


_SLURM = {"RANK": "PROCID", "WORLD_SIZE": "NTASKS"}


def _slurm_local(plan: Plan, statement: Statement) -> str:
    """The device index that the script itself chose, as text; SLURM's local id where it chose none by then."""
    for call in plan.tree.calls:
        where = plan.tree.statement(call)
        if "torch.cuda.set_device" not in plan.imports.names(call.func) or not call.args:
            continue
        chosen = call.args[0].value
        if where.function is not statement.function or not isinstance(chosen, cst.Name | cst.Attribute):
            continue
        place = plan.flow.place(chosen, statement.function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        if where.order < statement.order or any(b.statement.order < statement.order for b in bindings):
            return f"str({plan.code(chosen)})"
    return 'os.environ.get("SLURM_LOCALID", "0")'


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


def _mentions_slurm(plan: Plan) -> bool:
    return any(
        isinstance(node, cst.SimpleString) and "SLURM_PROCID" in node.value
        for call_or_sub in plan.tree.statements
        if not isinstance(call_or_sub.node, cst.BaseCompoundStatement)
        for node in descendants(call_or_sub.node)
    )


def _is_spawned(plan: Plan) -> bool:
    return any(plan.imports.names(call.func) & set(SPAWNERS) for call in plan.tree.calls)


def _spawn(plan: Plan, call: cst.Call) -> None:
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
    if processes is not None:
        _forget_count(plan, processes, call)
        _say_count(plan, processes, call)
    plan.converted("MG202", statement, "mp.spawn → one call per process of the launcher",
                   "DeepSpeed needs the launcher's environment; the process index is LOCAL_RANK")  # fmt: skip
    plan.facts["spawned"] = True
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
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if statement.function is not spawn.function or statement.order >= spawn.order or call in plan.handled:
            continue
        if isinstance(statement.node, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            continue
        last = (dotted(call.func) or "").rpartition(".")[2]
        if last in _LIGHT or not last or (spawn.function.is_module and statement.up is None):
            continue
        if "seed" in last:
            plan.kept("MG207", statement, f"{last} ran in the parent only; now every process is seeded alike",
                      "spawned workers started with their own seeds")  # fmt: skip
        elif any(word in last.lower() for word in _HEAVY) or _made_once(plan, call, statement):
            shown = " ".join(plan.code(statement.node).split())
            plan.todo(
                "MG207",
                statement,
                f"`{shown if len(shown) < _SHOWN else shown[:_SHOWN] + '…'}` ran once in the parent and was shared; now every process "
                "runs it: let rank 0 go first where it writes or downloads, and seed it where it is random",
                "the launcher starts the whole script in every process",
            )


_SHOWN = 50
_PLAIN_MODULES = ("os", "sys", "argparse", "time", "datetime", "json", "yaml", "pathlib", "math", "logging", "socket",
                  "torch.cuda", "torch.device", "torch.multiprocessing", "warnings", "platform", "shlex")  # fmt: skip


def _made_once(plan: Plan, call: cst.Call, statement: Statement) -> bool:
    """Whether a value that another module computes is kept in a variable: it may be random, large, or written to disk."""
    if not isinstance(statement.node, cst.Assign):
        return False
    names = plan.imports.names(call.func)
    text = dotted(call.func)
    if text is None or not plan.imports.meanings(text.partition(".")[0], statement.function):
        return False
    return not any(name == m or name.startswith(m + ".") for name in names for m in _PLAIN_MODULES)


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
        plan.converted("MG203", statement, f"{name} is only set where the launcher did not",
                       "overwriting the launcher's rendezvous leaves the processes waiting for each other")  # fmt: skip


def _options(plan: Plan) -> None:
    """``--local_rank`` in either spelling: default from the environment, both spellings accepted."""
    for call in option_calls(plan):
        spellings = [arg for arg in call.args if arg.keyword is None and isinstance(arg.value, cst.SimpleString)]
        names = [str(arg.value.evaluated_value) for arg in spellings]  # type: ignore[attr-defined]
        if not any(name.lstrip("-").replace("-", "_") == "local_rank" for name in names):
            continue
        plan.facts["takes_local_rank"] = True
        statement = plan.tree.statement(call)
        default = argument(call, None, "default")
        if default is not None and "LOCAL_RANK" in plan.code(default) and "--local_rank" in names:
            continue
        fallback = plan.code(default) if default is not None and dotted(default) != "None" else "0"
        plan.need("os")
        plan.edits.replace(call, partial(_local_rank_option, fallback=fallback))
        plan.converted("MG204", statement, "--local_rank takes its default from LOCAL_RANK, both spellings accepted",
                       "torchrun sets the variable, the deepspeed launcher passes the option")  # fmt: skip


_LONGEST_CALL = 110
"""Characters of a rewritten option on one line, indentation not counted."""


def _local_rank_option(call: Node, *, fallback: str) -> Node:
    """``add_argument`` with both spellings and a default from the environment; its other arguments stay as they are."""
    assert isinstance(call, cst.Call)
    space = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    flags = [arg for arg in call.args if arg.keyword is None]
    spelled = {str(arg.value.evaluated_value) for arg in flags if isinstance(arg.value, cst.SimpleString)}
    new = [
        cst.Arg(cst.SimpleString(f'"{name}"'), comma=space)
        for name in ("--local_rank", "--local-rank")
        if name not in spelled
    ]
    kept: list[cst.Arg] = []
    has_default = has_type = False
    for given in call.args:
        arg = given
        name = arg.keyword.value if arg.keyword is not None else None
        if name == "required":
            continue
        if name == "default":
            has_default = True
            if "LOCAL_RANK" not in cst.Module([]).code_for_node(arg.value):
                arg = arg.with_changes(value=cst.parse_expression(f'int(os.environ.get("LOCAL_RANK", {fallback}))'))
        has_type = has_type or name == "type"
        kept.append(arg)
    head = [arg for arg in kept if arg.keyword is None]
    if new and not isinstance(head[-1].comma, cst.Comma):
        head[-1] = head[-1].with_changes(comma=space)
    first = [
        arg for arg in new if isinstance(arg.value, cst.SimpleString) and arg.value.evaluated_value == "--local_rank"
    ]
    arguments = [*first, *head, *[a for a in new if a not in first], *[arg for arg in kept if arg.keyword is not None]]
    no_space = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    extra = []
    if not has_type:
        extra.append(cst.Arg(cst.Name("int"), keyword=cst.Name("type"), equal=no_space, comma=space))
    if not has_default:
        value = cst.parse_expression(f'int(os.environ.get("LOCAL_RANK", {fallback}))')
        extra.append(cst.Arg(value, keyword=cst.Name("default"), equal=no_space))
    if extra and not isinstance(arguments[-1].comma, cst.Comma):
        arguments[-1] = arguments[-1].with_changes(comma=space)
    arguments.extend(extra)
    if not isinstance(call.args[-1].comma, cst.Comma):
        arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    result = call.with_changes(args=arguments)
    text = cst.Module([]).code_for_node(result)
    if "\n" in text or len(text) <= _LONGEST_CALL:
        return result
    function = cst.Module([]).code_for_node(call.func)
    lines = [cst.Module([]).code_for_node(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in arguments]
    return cst.parse_expression(f"{function}(\n" + "".join(f"    {line},\n" for line in lines) + ")")


def _say_count(plan: Plan, count: Node, call: cst.Call) -> None:
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


def _forget_count(plan: Plan, count: Node, call: cst.Call) -> None:
    """Remove ``world_size = torch.cuda.device_count()`` where only the spawn read it."""
    if not isinstance(count, cst.Name):
        return
    function = plan.function_of(call)
    place = plan.flow.variable(count.value, function)
    bindings = [b for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"]
    if len(bindings) != 1 or bindings[0].function is not function:
        return
    made = bindings[0].value
    if not isinstance(made, cst.Call) or not (dotted(made.func) or "").endswith("device_count"):
        return
    inside = set(descendants(call))
    for statement in function.statements:
        if isinstance(statement.node, cst.FunctionDef | cst.ClassDef):
            continue
        for sub in descendants(statement.node):
            if (
                isinstance(sub, cst.Name)
                and sub.value == count.value
                and sub not in inside
                and statement is not bindings[0].statement
            ):
                if (
                    not isinstance(statement.node, cst.BaseCompoundStatement)
                    or plan.tree.statement_of.get(sub) is statement
                ):
                    return
    plan.edits.remove(bindings[0].statement.node)
    plan.converted(
        "MG202", bindings[0].statement, f"{count.value} removed: nothing else reads it", "the launcher decides"
    )
