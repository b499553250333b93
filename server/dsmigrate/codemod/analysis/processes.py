"""How the processes of a training come into being, and what tells each of them which one it is."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import Analysis, implies, nearest_common
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, both
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.site import Site
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import UNBOUND, Choice, Const, Expr, Value


class Teller(enum.Enum):
    """What tells a process its rank."""

    LAUNCHER = "a launcher"
    """torchrun or the deepspeed launcher: RANK, LOCAL_RANK, the option --local_rank."""
    SLURM = "SLURM"
    MPI = "MPI"
    SPAWN = "spawn"
    """The script itself, which starts its processes."""
    OPTION = "option"
    """An option of the command line, given by whoever starts each process."""
    NOBODY = "nobody"
    """One process, whose rank is written out."""


_OF_MPI = ("OMPI_", "PMI_", "PMIX_", "MV2_", "MPI_")


def leaves(value: object) -> Iterator[Expr]:
    """The symbols that a value is worked out from."""
    if isinstance(value, Expr):
        if value.op in {"env", "arg", "process", "rank", "local_rank", "is set"}:
            yield value
        for arg in value.args:
            yield from leaves(arg)
    elif isinstance(value, Choice):
        for condition, option in value.options:
            del condition
            yield from leaves(option)


def tellers_of(value: Value) -> set[Teller]:
    """What a rank comes from."""
    found = {_teller(leaf) for leaf in leaves(value)}
    return found or {Teller.NOBODY if isinstance(value, Const) else Teller.LAUNCHER}


def tells(value: Value) -> Teller:
    """What a rank comes from first of all."""
    found = tellers_of(value)
    return next(
        one
        for one in (Teller.SPAWN, Teller.SLURM, Teller.MPI, Teller.LAUNCHER, Teller.OPTION, Teller.NOBODY)
        if one in found
    )


def _teller(leaf: Expr) -> Teller:
    if not leaf.args:  # what the group was told is the rank
        return Teller.OPTION
    if leaf.op == "process":
        return Teller.SPAWN
    name = leaf.args[0]
    if leaf.op == "arg":
        return Teller.LAUNCHER if name == "local_rank" else Teller.OPTION
    if isinstance(name, str) and name.startswith("SLURM_"):
        return Teller.SLURM
    if isinstance(name, str) and name.startswith(_OF_MPI):
        return Teller.MPI
    return Teller.LAUNCHER


def options_of(value: Value) -> Iterator[tuple[Condition, Value]]:
    """The values that a value may be, each with its condition."""
    if isinstance(value, Choice):
        for condition, option in value.options:
            if option is not UNBOUND:
                yield from ((both(condition, inner), one) for inner, one in options_of(option))
    elif value is not UNBOUND:
        yield TRUE, value


@dataclass(frozen=True, slots=True)
class Group:
    """A place that sets up the process group, in one of its runs. ``spawn``: the event that started the process."""

    event: Event
    spawn: Event | None
    rank: tuple[tuple[Condition, Value], ...]

    @property
    def tellers(self) -> set[Teller]:
        """What the rank comes from, under one condition or another."""
        if self.spawn is not None:
            return {Teller.SPAWN}
        return set().union(*(tellers_of(value) for _, value in self.rank))


def is_given(group: Group) -> bool:
    """Whether code that is not read gives a process its rank."""
    return any(not isinstance(value, Const) and not list(leaves(value)) for _, value in group.rank)


def spawn_around(analysis: Analysis, block: Block) -> Event | None:
    """The event that started the process in which a block is run; None in the process of the script itself."""
    for one in block.around():
        if one.kind is BlockKind.SPAWNED:
            return next((event for event in analysis.of(Happening.SPAWN) if event.node is one.node), None)
    return None


def handed_to(analysis: Analysis, block: Block) -> Block | None:
    """The call of code that is not read, outside of torch, which calls the function that a block is in."""
    for one in block.around():
        if (
            one.kind is BlockKind.CALL
            and one.node in analysis.run.handed
            and isinstance(one.node, ast.Call)
            and one.module is not None
        ):
            decorates = isinstance(one.module.step(one.node).node, ast.FunctionDef | ast.ClassDef)
            return None if decorates else one
    return None


def groups(training: Training) -> tuple[Group, ...]:
    """Every set-up of the process group before the engine, in each of its runs."""
    found: list[Group] = []
    for event in training.events(Happening.GROUP):
        if not any(_before(event, run) for run in training.runs or (training,)):
            continue
        spawn = spawn_around(training.analysis, event.block)
        rank = event.what.get("rank")
        given = (
            tuple(options_of(rank)) if rank is not None and rank != Const(-1) else _from_environment(training, event)
        )
        found.append(Group(event, spawn, given))
    return tuple(found)


def _before(event: Event, run: Training) -> bool:
    """Whether a group is set up on the way to the engine of one run, in the process that makes it."""
    if not isinstance(run.site, Site) or event.number > run.site.number:
        return False
    common = nearest_common([event, run.wraps[0]])
    return not _spawned_below(event.block, common) and not any(
        block.kind is BlockKind.SPAWNED for block in _up_to(run.wraps[0].block, common)
    )


def _up_to(block: Block, outer: Block) -> Iterator[Block]:
    for one in block.around():
        if one is outer:
            return
        yield one


def _spawned_below(block: Block, outer: Block) -> bool:
    return any(one.kind is BlockKind.SPAWNED for one in _up_to(block, outer))


def _from_environment(training: Training, event: Event) -> tuple[tuple[Condition, Value], ...]:
    """The rank where the call names none: what RANK says, as it is or as the script has set it."""
    written = [
        one
        for one in training.events(Happening.ENVIRONMENT)
        if one["name"] == Const("RANK") and one.number < event.number
    ]
    found: list[tuple[Condition, Value]] = [
        (one.condition, one["value"]) for one in written if both(one.condition, event.condition) is not FALSE
    ]
    if not any(implies(event.condition, condition) for condition, _ in found):
        found.append((TRUE, Expr("env", "RANK", varies=True)))
    return tuple(found)


def is_set(training: Training, name: str, group: Group, condition: Condition) -> bool:
    """Whether the script has set a variable of the environment before a group, wherever a condition holds."""
    holds = both(condition, group.event.condition)
    return any(
        event["name"] == Const(name) and event.number < group.event.number and implies(holds, event.condition)
        for event in training.events(Happening.ENVIRONMENT)
    )


def is_after(training: Training, name: str, group: Group) -> bool:
    """Whether the script sets a variable between the group and the engine, on all ways."""
    return any(
        event["name"] == Const(name)
        and event.number > group.event.number
        and training.is_before(event)
        and implies(group.event.condition, event.condition)
        for event in training.events(Happening.ENVIRONMENT)
    )


def device_of(training: Training, group: Group) -> Event | None:
    """Where the script chooses the device of a process by a number; None where it does not."""
    for event in training.events(Happening.DEVICE):
        if _number(event["device"]) and spawn_around(training.analysis, event.block) is group.spawn:
            return event
    return None


def _number(value: Value) -> bool:
    if isinstance(value, Choice):
        return all(_number(one) for _, one in options_of(value))
    if isinstance(value, Const):
        return isinstance(value.value, int) and not isinstance(value.value, bool)
    return isinstance(value, Expr) and value.op in {
        "env",
        "arg",
        "process",
        "local_rank",
        "%",
        "int",
        "rank",
        "index",
        "+",
        "-",
        "*",
        "//",
    }
