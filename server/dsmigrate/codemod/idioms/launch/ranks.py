"""LOCAL_RANK, which DeepSpeed reads, where the processes are started by the script, by SLURM or by MPI."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.code import as_written, said
from dsmigrate.codemod.analysis.conditions import FALSE, both, negate, under
from dsmigrate.codemod.analysis.events import Event
from dsmigrate.codemod.analysis.processes import (
    Group,
    Teller,
    device_of,
    groups,
    handed_to,
    is_after,
    is_given,
    is_set,
    leaves,
    spawn_around,
    tellers_of,
    tells,
)
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Obj, Value
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Insert
from dsmigrate.codemod.program.module import Module
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG206",
        "Ranks from SLURM and MPI are handed to DeepSpeed",
        "LOCAL_RANK is set from the script's own numbers where srun or mpirun starts the processes; where the script needs "
        "their variables, the launch command is theirs.",
        "DeepSpeed reads LOCAL_RANK from the environment, and takes the process group that the script has set up.",
        "deepspeed/runtime/engine.py, _set_distributed_vars",
        Kind.CONVERTED,
    ),
    Idea(
        "MG208",
        "Code that is not read starts the training",
        "A function of a library is given the training function to call, and may start its processes.",
        "DeepSpeed reads LOCAL_RANK in each process when the engine is made. torchrun sets it; what starts processes by "
        "itself often does not.",
        "deepspeed/runtime/engine.py, _set_distributed_vars",
        Kind.TODO,
    ),
    Idea(
        "MG229",
        "Spawned processes get their LOCAL_RANK",
        "mp.spawn and multiprocessing.Process stay: each worker sets LOCAL_RANK before DeepSpeed makes its engine.",
        "DeepSpeed reads LOCAL_RANK from the environment, which only a launcher sets; the process group is the script's own.",
        "deepspeed/runtime/engine.py, _set_distributed_vars",
        Kind.CONVERTED,
    ),
)
_LOCAL = {
    Teller.SLURM: ("SLURM_LOCALID",),
    Teller.MPI: ("OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
}
_COMMANDS = {Teller.SLURM: "srun", Teller.MPI: "mpirun"}


def ranks(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each set-up of the process group whose processes no launcher has numbered."""
    found: dict[ast.AST, list[Group]] = {}
    for group in groups(training):
        found.setdefault(group.event.node, []).append(group)
    lines: dict[tuple[str, object], list[tuple[Group, str, str]]] = {}
    for here in found.values():
        lacking = [(group, value) for group in here for value in _lacking(training, group)]
        if not lacking:
            continue
        group, value = next((one for one in lacking if one[0].spawn is not None), lacking[0])
        teller = Teller.SPAWN if group.spawn is not None else tells(value)
        code = "MG229" if teller is Teller.SPAWN else "MG206"
        number = _number(training, group, value, teller)
        if number is None:
            yield _without_number(group, code)
            continue
        always = len(lacking) == sum(max(len(one.rank), 1) for one in here) and all(
            one.spawn is not None for one in here
        )
        if group.spawn is not None and not always:  # None in a worker that is called for the default device
            number = number.replace(")", " or 0)")
        line = f'os.environ["LOCAL_RANK"] = {number}' if always else f'os.environ.setdefault("LOCAL_RANK", {number})'
        lines.setdefault((line, group.event.module.step(group.event.node).function), []).append((group, code, number))
    for (line, _), several in lines.items():
        group, code, number = several[0]
        module = group.event.module
        yield _set(module, _place([one.event for one, *_ in several], number), line, code)
    for spawn in dict.fromkeys(spawn_around(training.analysis, wrap.block) for wrap in training.wraps):
        if spawn is not None and not any(group.spawn is spawn for here in found.values() for group in here):
            yield _at_start(spawn)
    yield from _first(facts, [group for here in found.values() for group in here])
    yield from _by_others(training, [group for here in found.values() for group in here])


def _by_others(training: Training, made: list[Group]) -> Iterator[Decision]:
    """Mark the call of unread code that starts the training, where no launcher's variables tell the ranks."""
    if (made and not any(is_given(group) for group in made)) or any(group.spawn is not None for group in made):
        return
    for call in dict.fromkeys(handed_to(training.analysis, wrap.block) for wrap in training.wraps):
        if call is None or call.node is None or call.module is None:
            continue
        yield Decision(
            "MG208", Kind.TODO, call.module, call.node, 'if this starts the processes, set os.environ["LOCAL_RANK"] in each before the engine',
            "DeepSpeed reads it when the engine is made; what starts them is not read",
        )  # fmt: skip


def _at_start(spawn: Event) -> Decision:
    """The number is set where a worker starts, whose group is set up by code that is not read."""
    number, place = _of_worker(spawn)
    if number is None or place is None:
        return _todo(spawn, "MG229")
    return _set(*place, f'os.environ["LOCAL_RANK"] = {number}', "MG229")


def _first(facts: Facts, made: list[Group]) -> Iterator[Decision]:
    """Say of a manager whose numbers are asked for first that it has to start the processes within its jobs."""
    launched = {Expr("is set", name, varies=False): True for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    site = facts.site
    for teller in _LOCAL:
        for group in made:
            mine = [condition for condition, value in group.rank if tells(value) is teller]
            if len(mine) == len(group.rank) or not any(under(condition, launched) is not FALSE for condition in mine):
                continue
            name = teller.value
            yield Decision(
                "MG206", Kind.KEPT, site.module, site.node, told("within a job of {name} start it with {command}: its numbers come first there", name=name, command=_COMMANDS[teller]),
                "every process of a launcher would see the numbers of the one task that the launcher runs in",
                lines=(site.node.lineno, site.node.lineno),
            )  # fmt: skip
            return


def _place(events: list[Event], number: str) -> ast.stmt:
    """The statement before which the number is set once: that of the set-up, or what holds several of them."""
    steps = [event.module.step(event.node) for event in events]
    function = steps[0].function
    taken = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args)} if function is not None else set()
    if number.removeprefix("str(").removesuffix(")").split(" ")[0].split(".")[0] in taken:
        for one in steps[0].around():
            if all(any(other.body is one.body for other in step.around()) for step in steps[1:]):
                return one.node
    return steps[0].node


def _set(module: Module, node: ast.AST, line: str, code: str) -> Decision:
    return Decision(
        code, Kind.CONVERTED, module, node, line, "DeepSpeed reads LOCAL_RANK when the engine is made",
        edits=(Insert(module, node, ((line,),)),), lines=(0, 0), suits_all=True,
        imports=(Import(module, "os"), *((Import(module, "torch"),) if "torch." in line else ())),
    )  # fmt: skip


def _lacking(training: Training, group: Group) -> Iterator[Value]:
    """The ranks of a process group under which DeepSpeed would find no LOCAL_RANK."""
    if is_after(training, "LOCAL_RANK", group):
        return
    for condition, value in group.rank:
        launched = group.spawn is None and tellers_of(value) in ({Teller.LAUNCHER}, {Teller.LAUNCHER, Teller.OPTION})
        if value == Const(-1):  # torch reads RANK then, which only a launcher sets
            continue
        if (
            launched
            or is_set(training, "LOCAL_RANK", group, condition)
            or both(condition, group.event.condition) is FALSE
        ):
            continue
        yield value


def _without_number(group: Group, code: str) -> Decision:
    """What is done where the index of the device has no name at the set-up of the group."""
    number, place = (None, None) if group.spawn is None else _of_worker(group.spawn)
    if number is not None and place is not None:
        return _set(*place, f'os.environ["LOCAL_RANK"] = {number}', code)
    return _todo(group.event, code)


def _todo(event: Event, code: str) -> Decision:
    return Decision(
        code, Kind.TODO, event.module, event.node, 'set os.environ["LOCAL_RANK"] to the device index before this',
        "DeepSpeed reads it when the engine is made; no launcher sets it here",
    )  # fmt: skip


def _number(training: Training, group: Group, value: Value, teller: Teller) -> str | None:
    """The index of a process's device as text, at the set-up of the group."""
    names = group.event.names
    chosen = device_of(training, group)
    candidates: list[Value] = [] if chosen is None else [chosen["device"]]
    if group.spawn is not None:
        candidates += [leaf for leaf in leaves(value) if leaf.op == "process"]
        candidates += [
            one for scope in names for one in scope.values() if isinstance(one, Expr) and one.op == "process"
        ]
    else:
        candidates += [Expr("env", name, varies=True) for name in _LOCAL.get(teller, ())]
        if teller is Teller.NOBODY:
            candidates.append(value)
    texts = (said(candidate, names) for candidate in candidates)
    text = next((text for text in texts if text is not None), None)
    if (
        text is None
        and chosen is not None
        and isinstance(chosen.node, ast.Call)
        and chosen.node.args
        and chosen.number < group.event.number
        and both(group.event.condition, negate(chosen.condition)) is FALSE
    ):
        text = as_written(training.analysis, chosen.node.args[0], chosen.names, names)
    if text is not None:
        return f'"{text}"' if text.isdigit() else f"str({text})"
    if teller is Teller.SLURM:  # which may show each task its own device only
        return '"0" if torch.cuda.device_count() == 1 else os.environ.get("SLURM_LOCALID", "0")'
    if teller is Teller.MPI:
        asked = [str(leaf.args[0]) for leaf in leaves(value) if leaf.op == "env"]
        return next(
            (f'os.environ.get("{name}", "0")' for name in _LOCAL[teller] if any(one[:3] == name[:3] for one in asked)),
            None,
        )
    return None


def _of_worker(spawn: Event) -> tuple[str | None, tuple[Module, ast.AST] | None]:
    """The number that a spawned function gets first, and the start of that function."""
    function = spawn["function"]
    if isinstance(function, Obj) and isinstance(function.node, ast.FunctionDef):
        taken = [*function.node.args.posonlyargs, *function.node.args.args]
        body = function.node.body
        first = (
            body[1]
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
            else body[0]
        )
        if taken and isinstance(spawn["name"], Const) and spawn["name"].value.startswith("torch.multiprocessing.s"):
            return f"str({taken[0].arg})", (function.data["frame"].module, first)
    return None, None
