"""What happens in a training, as a tree: calls, loops, branches and regions hold the events in their order."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from dsmigrate.codemod.analysis.conditions import TRUE, Condition, both
from dsmigrate.codemod.analysis.values import Context, Obj, Value, show
from dsmigrate.codemod.program.module import Module


class Happening(enum.Enum):
    """The kinds of events."""

    GROUP = "Group"
    GROUP_GONE = "GroupGone"
    DEVICE = "Device"
    PLACED = "Placed"
    SPAWN = "Spawn"
    ENVIRONMENT = "Environment"
    SYS_PATH = "SysPath"
    WRAP = "Wrap"
    PARALLEL = "Parallel"
    MADE = "Made"
    BATCH = "Batch"
    FORWARD = "Forward"
    BACKWARD = "Backward"
    STEP = "Step"
    ZERO_GRAD = "ZeroGrad"
    SCALE = "Scale"
    UNSCALE = "Unscale"
    SCALER_UPDATE = "ScalerUpdate"
    CLIP = "Clip"
    SCHEDULE = "ScheduleStep"
    GRADIENT_READ = "GradRead"
    GRADIENT_WRITE = "GradWrite"
    WEIGHT_READ = "WeightRead"
    WEIGHT_WRITE = "WeightWrite"
    BUFFER_WRITE = "BufferWrite"
    RATE_WRITE = "RateWrite"
    THAW = "Thaw"
    COLLECTIVE = "Collective"
    SAVE = "Save"
    READ = "Read"
    FILE = "File"
    """A file is asked about, copied, moved or removed."""
    STATE = "State"
    RESTORE = "Restore"
    PARAMETERS = "Parameters"
    COPY = "Copy"
    MODE = "Mode"
    PRECISION = "Precision"
    SYNC = "Sync"
    ACCESS = "Access"
    KIND_TEST = "KindTest"
    HOOK = "Hook"
    COMPILED = "Compiled"
    MOVED = "Moved"
    """Data goes to a device."""
    AMP = "Amp"
    GRADIENT = "Gradient"
    EXIT = "Exit"
    OPAQUE = "Opaque"
    SEED = "Seed"
    """torch's random numbers begin anew."""
    EPOCH = "Epoch"
    """A sampler is told the epoch."""
    PART = "Part"
    """A converted script calls a part of ``ds_compat``."""


class BlockKind(enum.Enum):
    """What holds events."""

    ENTRY = "entry"
    MODULE = "module"
    CALL = "call"
    LOOP = "loop"
    BRANCH = "branch"
    WITH = "with"
    TRY = "try"
    HANDLER = "except"
    SPAWNED = "spawned"


@dataclass(eq=False, slots=True)
class Event:
    """Something that happened: ``node`` in ``module`` is where, ``what`` who and with what.

    ``names`` are the names that are bound there, with their values, from the inside out: the function's, those of the
    functions around it, the module's.
    """

    kind: Happening
    node: ast.AST
    module: Module
    context: Context
    block: Block
    what: Mapping[str, Value]
    names: tuple[Mapping[str, Value], ...] = ()
    number: int = 0

    def __getitem__(self, name: str) -> Value:
        return self.what[name]

    @property
    def line(self) -> int:
        """The line of the file on which it happens."""
        return int(getattr(self.node, "lineno", 1))

    @property
    def condition(self) -> Condition:
        """Under which condition it happens."""
        return self.block.condition

    def __str__(self) -> str:
        said = ", ".join(f"{name}={show(value)}" for name, value in self.what.items())
        return f"{self.kind.value} {said}  :{self.line}"


@dataclass(eq=False, slots=True)
class Block:
    """A call, loop, branch or region of the run, and what happened in it.

    ``test`` is the condition of a branch; ``label`` the called function, what a loop goes over, or what a region is of.
    """

    kind: BlockKind
    node: ast.AST | None
    module: Module | None
    up: Block | None
    label: Value | None = None
    test: Condition = TRUE
    items: list[Event | Block] = field(default_factory=list)
    names: tuple[Mapping[str, Value], ...] = ()
    """What is bound outside of a branch, and where a function is called."""
    result: Value | None = None
    """What a call gives."""
    is_rest: bool = False
    """Whether it holds what follows the statement ``node``, where some runs do not get behind that."""
    is_only_way: bool = False
    """Whether all that goes on has come through: all other ways end the process or raise, on whichever rank."""

    def around(self) -> Iterator[Block]:
        """The block and those that hold it, from the inside out."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.up

    @property
    def condition(self) -> Condition:
        """Under which condition what is in here happens."""
        return both(*(block.test for block in self.around()))

    def events(self) -> Iterator[Event]:
        """Every event in here, in order."""
        for item in self.items:
            if isinstance(item, Event):
                yield item
            else:
                yield from item.events()

    def blocks(self) -> Iterator[Block]:
        """The block and every block in it, in order."""
        yield self
        for item in self.items:
            if isinstance(item, Block):
                yield from item.blocks()

    def copied(self, up: Block, made: dict[Block, Block]) -> Block:
        """The same happening at another place; ``made`` notes what each block becomes."""
        found = made[self] = replace(self, up=up, items=[])
        for item in self.items:
            if isinstance(item, Block):
                found.items.append(item.copied(found, made))
            else:
                found.items.append(replace(item, block=found))
        return found

    def title(self) -> str:
        """The block as people read it in a tree of events, without what is in it."""
        line = f"  :{getattr(self.node, 'lineno', 0)}"
        match self.kind:
            case BlockKind.BRANCH:
                return f"if {self.test}:{line}"
            case BlockKind.LOOP:
                return f"loop over {show(self.label)}:{line}"
            case BlockKind.CALL if isinstance(self.label, Obj):
                return f"{self.label.data.get('name', show(self.label))}(){line}"
        return f"{self.kind.value} {show(self.label) if self.label is not None else ''}{line}"


def render(block: Block, depth: int = 0) -> Iterator[str]:
    """The tree as text, a line each."""
    for item in block.items:
        if isinstance(item, Event):
            yield "  " * depth + str(item)
        elif any(True for _ in item.events()):
            yield "  " * depth + item.title()
            yield from render(item, depth + 1)


def groups_read(event: Event) -> ast.Subscript | None:
    """``optimizer.state_dict()["param_groups"]``, which reads no state, around the call of ``state_dict``."""
    statement = event.module.step(event.node).node
    return next(
        (
            one
            for one in ast.walk(statement)
            if isinstance(one, ast.Subscript)
            and one.value is event.node
            and isinstance(one.slice, ast.Constant)
            and one.slice.value == "param_groups"
        ),
        None,
    )
