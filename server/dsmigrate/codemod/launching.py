"""How the converted script is started: the commands, and what they leave to the person."""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.codemod.analysis.analysis import Analysis, static_value
from dsmigrate.codemod.analysis.code import holds_by_default, truth_by_default
from dsmigrate.codemod.analysis.conditions import TRUE, Condition, Literal, Several, both
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.processes import Group, Teller, groups, handed_to, is_given, leaves, spawn_around
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import TRUE_VALUE, Const, Expr, Kind, Value
from dsmigrate.codemod.model import DEVICES, Start, Trial
from dsmigrate.codemod.program.module import Module
from dsmigrate.codemod.program.project import ROOT

PROCESSES = 2
_TORCHRUN_ONLY = frozenset({"LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_RUN_ID"})
_MANAGERS = {Teller.SLURM: "srun --ntasks", Teller.MPI: "mpirun -np"}
_LAUNCHERS = frozenset({"local_rank", "node_rank"})


@dataclass(frozen=True, slots=True)
class Launching:
    """The commands, one a launcher; how the script starts its processes; the words of the commands to replace.

    ``trial`` is None where a process needs more than the environment of torchrun or srun, or starts as a module.
    """

    commands: tuple[str, ...]
    start: Start
    placeholders: tuple[str, ...]
    trial: Trial | None


@dataclass(frozen=True, slots=True)
class _Word:
    """An argument of the script: its option, "" for a positional one, its value, and whether a person has to fill it in."""

    option: str
    value: str = ""
    open: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The argument as words of a command line."""
        return tuple(filter(None, (self.option, self.value)))


def launching(analysis: Analysis, trainings: Sequence[Training], shown: str) -> Launching:
    """The commands for a script with some trainings; ``shown`` is its path as the person named it."""
    made = [group for training in trainings for group in groups(training)]
    wraps = [wrap for training in trainings for wrap in training.wraps]
    spawns = list(dict.fromkeys(filter(None, (spawn_around(analysis, wrap.block) for wrap in wraps))))
    start = _start(analysis, made, spawns)
    wanted = _wanted(analysis, trainings, spawns)
    count = _count(analysis, start, made, wanted)
    if count is not None:
        wanted.append(count)
    wanted += [word for word in _of_spawned(analysis, made) if word not in wanted]
    needed = [word for word in _needed(analysis) if all(word.option != other.option for other in wanted)]
    words = list(dict.fromkeys([*sorted(needed, key=lambda word: bool(word.option)), *wanted]))
    folder, name, module = _place(analysis, shown)
    arguments = tuple(part for word in words for part in word.words)
    there = f"cd {shlex.quote(folder)} && " if folder else ""
    tail = shlex.join((*(("-m",) if module else ()), name, *arguments))
    commands = tuple(_commands(analysis, start, made, there, tail))
    untold = not module and (start.spawned or _tellers(made) not in ({Teller.OPTION}, {Teller.MPI}))
    trial = Trial(folder, name, arguments) if untold else None
    return Launching(commands, start, tuple(dict.fromkeys(word.value for word in words if word.open)), trial)


def _commands(analysis: Analysis, start: Start, made: list[Group], there: str, tail: str) -> Iterator[str]:
    tellers = _tellers(made)
    if (
        start.spawned
        or tellers == {Teller.NOBODY}
        or (made and all(is_given(group) and handed_to(analysis, group.event.block) for group in made))
    ):
        yield f"{there}python {tail}"
        return
    flags = _by_option(analysis, made) if tellers == {Teller.OPTION} else []
    if flags:
        ranks, given = " ".join(map(str, range(PROCESSES))), " ".join(f"{flag} $RANK" for flag in flags)
        yield f"{there}for RANK in {ranks}; do {_address(analysis, made)}python {tail} {given} & done; wait"
        return
    manager = next((one for one in _MANAGERS if tellers == {one}), None)
    if manager is not None:
        command = _MANAGERS[manager] if not _asks(analysis, "PMI_RANK") else "mpiexec -n"
        yield f"{there}{_address(analysis, made)}{command} {PROCESSES} python {tail}"
        return
    yield f"{there}torchrun --nproc_per_node {PROCESSES} {tail}"
    if not analysis.run.asked & _TORCHRUN_ONLY:
        yield f"{there}deepspeed --num_gpus {PROCESSES} --no_local_rank {re.sub('^-m ', '--module ', tail)}"


def _by_option(analysis: Analysis, made: list[Group]) -> list[str]:
    """The options that tell each process its rank and its device."""
    told = {value for group in made for _, value in group.rank}
    if len(told) != 1:
        return []
    told |= {event["device"] for event in analysis.of(Happening.DEVICE)}
    options = [_option(analysis, value.args[0]) for value in told if isinstance(value, Expr) and value.op == "arg"]
    return sorted({flag for option in options if option is not None and (flag := _flag(option))}, reverse=True)


def _asks(analysis: Analysis, name: str) -> bool:
    return name in analysis.run.asked


def _address(analysis: Analysis, made: list[Group]) -> str:
    """The address that processes of SLURM or MPI meet at, where the script has none of its own."""
    written = any(event["name"] == Const("MASTER_ADDR") for event in analysis.of(Happening.ENVIRONMENT))
    given = any(
        group.event.what.get("init_method", Const("env://")) not in {Const("env://"), Const(None)} for group in made
    )
    return "" if written or given else "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "


# -- how the script starts its processes -----------------------------------------------------------------------------


def _tellers(made: list[Group]) -> set[Teller]:
    return set().union(*(group.tellers for group in made)) if made else set()


def _start(analysis: Analysis, made: list[Group], spawns: list[Event]) -> Start:
    tellers = _tellers(made)
    local = any("local_rank" in parser.data["options"] for parser in analysis.parsers)
    asked = {_manager(leaf) for group in made for _, value in group.rank for leaf in leaves(value)}
    basic: dict[str, Any] = {
        "local_rank": local,
        "slurm": Teller.SLURM in tellers | asked,
        "mpi": Teller.MPI in tellers | asked,
        "own": bool(spawns),
    }
    if not spawns:
        return Start(**basic)
    counts = {_meaning(analysis, spawn["count"]) for spawn in spawns}
    count, default = counts.pop() if len(counts) == 1 else ("", "")
    words = _satisfying(analysis, both(*(spawn.condition for spawn in spawns[:1])))
    return Start(
        spawned=True, count=count, default=default, switches=tuple(word.option for word in words if not word.value),
        unsure=not all(_is_switch(spawn.condition, spawn["count"]) for spawn in spawns), **basic,
    )  # fmt: skip


def _manager(leaf: Expr) -> Teller | None:
    name = str(leaf.args[0]) if leaf.op == "env" else ""
    return (
        Teller.SLURM
        if name.startswith("SLURM_")
        else Teller.MPI
        if name.startswith(("OMPI_", "PMI_", "MV2_"))
        else None
    )


def _is_switch(condition: Condition, count: Value) -> bool:
    """Whether nothing but options that are given or not decides, or that there are several processes."""
    if isinstance(condition, Several):
        return condition.all_of and all(_is_switch(part, count) for part in condition.parts)
    if not isinstance(condition, Literal):
        return condition is TRUE
    match condition.atom.op, condition.atom.args:
        case "arg", _:
            return True
        case "<", (Const(value=int(least)), more):
            return condition.holds and more == count and least < PROCESSES
        case "<=", (Const(value=int(least)), more):
            return condition.holds and more == count and least <= PROCESSES
        case "<=" | "<", (fewer, Const(value=int(most))):
            return not condition.holds and fewer == count and most < PROCESSES
    return False


def _meaning(analysis: Analysis, value: Value) -> tuple[str, str]:
    """A number of processes: on each device one, written out, or an option with its default; "" where it is not known."""
    if isinstance(value, Const) and isinstance(value.value, int):
        return str(value.value), ""
    if isinstance(value, Expr) and value.op == "device_count":
        return DEVICES, ""
    if isinstance(value, Expr) and value.op == "arg":
        option = _option(analysis, value.args[0])
        if option is not None:
            default = option.get("default")
            text = str(default.value) if isinstance(default, Const) and default.value is not None else ""
            return _flag(option), DEVICES if isinstance(default, Expr) and default.op == "device_count" else text
    return "", ""


def _count(analysis: Analysis, start: Start, made: list[Group], wanted: list[_Word]) -> _Word | None:
    """The option that says how many processes there are, where its default is not that many."""
    if start.spawned:
        if (
            start.count.startswith("-")
            and start.default != DEVICES
            and not (start.default.isdecimal() and int(start.default) > 1)
        ):
            return _Word(start.count, str(PROCESSES))
        return None
    for group in made:
        size = group.event.what.get("world_size")
        if isinstance(size, Expr) and size.op == "arg":
            option = _option(analysis, size.args[0])
            if (
                option is not None
                and _flag(option) not in {word.option for word in wanted}
                and static_value(analysis, size) != PROCESSES
            ):
                return _Word(_flag(option), str(PROCESSES))
    return None


def _of_spawned(analysis: Analysis, made: list[Group]) -> Iterator[_Word]:
    """The number of nodes, and that of this one, for processes that the script starts, where the defaults are no such numbers."""
    for group in made:
        for name, number in (("world_size", "1"), ("rank", "0")) if group.spawn is not None else ():
            for leaf in leaves(group.event.what.get(name)):
                default = static_value(analysis, leaf) if leaf.op == "arg" else None
                option = _option(analysis, leaf.args[0]) if leaf.op == "arg" else None
                if isinstance(default, int) and default < 0 and option is not None:
                    yield _Word(_flag(option), number)


# -- arguments -------------------------------------------------------------------------------------------------------


def _option(analysis: Analysis, name: object) -> dict[str, object] | None:
    return next((parser.data["options"][name] for parser in analysis.parsers if name in parser.data["options"]), None)


def _flag(option: dict[str, object]) -> str:
    """The long spelling of an option; "" for a positional argument."""
    flags = [str(flag) for flag in option["flags"]]  # type: ignore[attr-defined]
    return next(
        (flag for flag in flags if flag.startswith("--")), flags[0] if flags and flags[0].startswith("-") else ""
    )


def _wanted(analysis: Analysis, trainings: Sequence[Training], spawns: list[Event]) -> list[_Word]:
    """The options without which the script would not come to its training on several processes."""
    found: dict[_Word, None] = {}
    for training in trainings[:1]:
        ways = []
        for wrap in training.wraps:
            spawn = [one.condition for one in spawns if spawn_around(analysis, wrap.block) is one]
            after = [event for event in training.backwards if event.number > wrap.number]
            for backward in after or training.backwards[:1]:
                condition = both(wrap.condition, backward.condition, *spawn)
                words = _satisfying(analysis, condition)
                ways.append((not words and holds_by_default(analysis, condition) is False, len(words), words))
        found.update(dict.fromkeys(min(ways, key=lambda way: way[:2])[2]))
    for condition, left in dict.fromkeys((both(*around), left) for around, left in analysis.run.required):
        if holds_by_default(analysis, condition) and holds_by_default(analysis, left) is False:
            found.update(dict.fromkeys(_satisfying(analysis, left)))
    return list(found)


def _satisfying(analysis: Analysis, condition: Condition) -> list[_Word]:
    """The options that make a condition hold that does not by default, as far as options decide."""
    if holds_by_default(analysis, condition):
        return []
    if isinstance(condition, Several):
        if condition.all_of:
            return [word for part in sorted(condition.parts, key=str) for word in _satisfying(analysis, part)]
        if any(not any(leaf.op == "arg" for leaf in _of(part)) for part in condition.parts):
            return []  # the launcher's environment sees to it
        ways = [way for part in sorted(condition.parts, key=str) if (way := _satisfying(analysis, part))]
        return min(ways, key=len) if ways else []
    return list(_of_literal(analysis, condition)) if isinstance(condition, Literal) else []


def _of(condition: Condition) -> Iterator[Expr]:
    if isinstance(condition, Literal):
        yield from leaves(condition.atom)
    elif isinstance(condition, Several):
        for part in condition.parts:
            yield from _of(part)


def _of_literal(analysis: Analysis, literal: Literal) -> Iterator[_Word]:
    atom: Any = literal.atom
    holds = literal.holds
    if truth_by_default(analysis, atom) is holds:
        return
    if atom.op == "is" and atom.args[1] == Const(None):
        atom, holds = atom.args[0], not holds
    value: object = None
    if atom.op == "==" and isinstance(atom.args[1], Const) and holds:
        value, atom = atom.args[1].value, atom.args[0]
    elif atom.op in {"<", "<="} and isinstance(atom.args[0], Const) and isinstance(atom.args[0].value, int) and holds:
        value, atom = atom.args[0].value + (atom.op == "<"), atom.args[1]
    if not isinstance(atom, Expr) or atom.op != "arg" or atom.args[0] in _LAUNCHERS:
        return
    option = _option(analysis, atom.args[0])
    if option is None:
        return
    action = option.get("action")
    if value is not None:
        yield _Word(_flag(option), str(value))
    elif action in {Const("store_true"), Const("store_false")}:
        if (action == Const("store_true")) is holds:
            yield _Word(_flag(option))
    elif holds:
        yield _Word(_flag(option), _placeholder(option, str(atom.args[0])), open=True)


def _needed(analysis: Analysis) -> Iterator[_Word]:
    """The arguments without which the script's parser stops, or that it takes for a path when it starts."""
    read = [obj for obj in analysis.run.made.values() if obj.kind is Kind.NAMESPACE and "parser" in obj.data]
    told = {obj.data["parser"] for obj in read if obj.data.get("told")}
    paths = {name for name, condition in analysis.run.paths if holds_by_default(analysis, condition)}
    for parser in analysis.parsers:
        if not read or parser in told or "under" in parser.data:
            continue
        for name, option in parser.data["options"].items():
            if (
                name in _LAUNCHERS
                or not option["flags"]
                or not holds_by_default(analysis, option.get("condition", TRUE))
            ):
                continue
            flag, nargs, default = _flag(option), option.get("nargs"), option.get("default")
            open_path = name in paths and default in {None, Const(None)} and "action" not in option
            if flag and option.get("required") != TRUE_VALUE and not open_path:
                continue
            if not flag and (
                "action" in option
                or not (nargs in {None, Const("+")} or (isinstance(nargs, Const) and _is_count(nargs)))
            ):
                continue
            yield _Word(flag, _placeholder(option, name), open=True)


def _is_count(nargs: Const) -> bool:
    return isinstance(nargs.value, int) and nargs.value > 0


def _placeholder(option: dict[str, object], name: str) -> str:
    said = option.get("metavar")
    text = said.value if isinstance(said, Const) and isinstance(said.value, str) and said.value else name
    return re.sub(r"\W+", "_", text).strip("_").upper() or "VALUE"


# -- where it is started ---------------------------------------------------------------------------------------------


def _place(analysis: Analysis, shown: str) -> tuple[str, str, bool]:
    """The folder to start from, "" for the present one; the script's name from there; whether that is a module's."""
    entry = analysis.project.entry
    module = analysis.project.module(entry, "__main__")
    here = posixpath.dirname(entry)
    base = _base(analysis, module) if module is not None else here
    if base != here:
        dotted = posixpath.relpath(entry, base or ".").removesuffix(".py").replace("/", ".")
        if all(part.isidentifier() for part in dotted.split(".")):
            return _from_here(shown, posixpath.relpath(base or ".", here or ".")), dotted, True
    if here and _starts_in_its_folder(analysis, entry):
        return _from_here(shown, "."), posixpath.basename(entry), False
    if shown == "-":
        return "", "train.py", False
    return "", f"./{shown}" if shown.startswith("-") else shown, False


def _from_here(shown: str, folder: str) -> str:
    """The way from where the person is to a folder that is given from the script's own; "" where they are there."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(shown), folder))
    return "" if found == "." else found


def _base(analysis: Analysis, entry: Module) -> str:
    """The folder that a script's imports start from: its own, or one above it, from which it is started as a module."""
    here = posixpath.dirname(entry.path)
    levels = [node.level for node in ast.walk(entry.tree) if isinstance(node, ast.ImportFrom)]
    found = here
    for _ in range(max(levels, default=0)):
        found = posixpath.dirname(found)
    known = {here, *(_below_root(event["path"]) for event in analysis.of(Happening.SYS_PATH))}
    for top in analysis.run.modules.values():
        if top.module is None or top.module.path == entry.path:
            continue
        tail = str(top.data["name"]).replace(".", "/")
        path = top.module.path.removesuffix(".py").removesuffix("/__init__")
        if path == tail or path.endswith(f"/{tail}"):
            base = path[: len(path) - len(tail)].rstrip("/")
            if base == here and not any(levels):
                return here
            if (
                base not in known
                and (here == base or here.startswith(f"{base}/") or base == "")
                and len(base) < len(found)
            ):
                found = base
    return found


def _below_root(path: Value) -> str | None:
    if not isinstance(path, Const) or not isinstance(path.value, str):
        return None
    inside = posixpath.normpath(path.value if path.value.startswith("/") else ROOT + path.value)
    return "" if inside + "/" == ROOT else inside.removeprefix(ROOT)


def _starts_in_its_folder(analysis: Analysis, entry: str) -> bool:
    """Whether the script's own paths, or the README, start from the folder that it lies in."""
    defaults = [option.get("default") for parser in analysis.parsers for option in parser.data["options"].values()]
    texts = [default.value for default in defaults if isinstance(default, Const) and isinstance(default.value, str)]
    if any(text.startswith("../") for text in texts):
        return True
    here = posixpath.dirname(entry)
    source = analysis.project.source
    for text in texts:
        if (
            "." in posixpath.basename(text)
            and source(posixpath.normpath(posixpath.join(here, text))) is not None
            and source(text) is None
        ):
            return True
    said = [prefix for folder in _above(here) for prefix in _in_readme(analysis, folder, posixpath.basename(entry))]
    return bool(said) and all(prefix in {"", "./"} for prefix in said)


def _above(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _in_readme(analysis: Analysis, folder: str, name: str) -> Iterator[str]:
    """What stands before a script's name where the README of a folder has it start."""
    for readme in ("README.md", "readme.md", "README.rst"):
        data = analysis.project.source(posixpath.join(folder, readme))
        if data is not None:
            text = data.decode("utf-8", "replace")
            for match in re.finditer(
                rf"(?:python[\d.]*|torchrun|launch)\b[^\n`]*?[\s\"']((?:[\w.-]+/)*){re.escape(name)}\b", text
            ):
                yield match[1]
