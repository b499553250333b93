"""The facts that travel between the stages of a migration, and out to the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

NEWEST_DEEPSPEED = "0.19.8"
DEVICES = "gpus"
"""The count of a script that starts one process for each visible device."""


class Kind(str, Enum):
    """What was decided about one construct of the script."""

    CONVERTED = "converted"
    KEPT = "kept"
    TODO = "todo"
    REFUSED = "refused"


class Status(str, Enum):
    """What became of one file."""

    CONVERTED = "converted"
    CONVERTED_WITH_TODOS = "converted_with_todos"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Change:
    """One decision: ``code`` is an MG code, lines are 1-based lines of the original file, both inclusive."""

    code: str
    kind: Kind
    line: int
    end_line: int
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class Idea:
    """The catalogue entry of one MG code.

    ``before`` and ``after`` are complete scripts (or fragments that ``tests/codemod`` completes); they are the test,
    the documentation page and the text of ``dsmigrate explain``. An idea whose ``after`` is empty refuses ``before``.
    ``marked``: what is left for the person carries a comment in the file.
    """

    code: str
    title: str
    summary: str
    why: str
    source: str
    kind: Kind
    before: str = ""
    after: str = ""
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """What the person asked for; the defaults keep the script's training as it is.

    ``zero_stage`` is 0 to 3; ``offload`` one of none, cpu, nvme; ``optimizer`` keep or config; ``precision`` keep,
    fp16 or bf16; ``checkpoints`` files or engine, which are DeepSpeed's own directories; ``config`` an existing DeepSpeed config to fit the script to; ``target_version`` a DeepSpeed release;
    ``with_launchers`` asks for shell scripts and the like too, ``launcher`` is what their lines start: keep or deepspeed.
    """

    zero_stage: int | None = None
    offload: str = "none"
    nvme_path: str | None = None
    optimizer: str = "keep"
    precision: str = "keep"
    checkpoints: str = "files"
    config: Mapping[str, Any] | None = None
    config_name: str = "ds_config.json"
    target_version: str = NEWEST_DEEPSPEED
    chosen_for: str = ""
    """The model and the GPUs that stage and offload were chosen for; "" where the person chose, or nobody."""
    chosen_sizes: Mapping[str, Any] = field(default_factory=dict)
    """What goes into ``zero_optimization`` for it: buckets, and the offload sections as a whole."""
    with_launchers: bool = False
    launcher: str = "keep"


@dataclass(frozen=True, slots=True)
class Start:
    """How the processes of the original script came into being, for whoever has to start the converted one.

    ``spawned``: it started them itself. Then ``count`` says how many on a node: ``"gpus"`` (one per visible device),
    digits, an option of the script ("--gpus", whose default is ``default``), or "" where it is not known. ``switches``
    are the options of which one has to be given for it to spawn at all; ``unsure``: it depends on something else too.
    ``nodes``: it worked out ranks from a node rank. ``local_rank``: it takes the option that the deepspeed launcher
    adds. ``slurm``: it takes its ranks from SLURM; ``mpi``: from MPI's variables. ``own``: the converted script goes on
    starting the processes itself.
    """

    spawned: bool = False
    count: str = ""
    default: str = ""
    switches: tuple[str, ...] = ()
    unsure: bool = False
    nodes: bool = False
    local_rank: bool = False
    slurm: bool = False
    mpi: bool = False
    own: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """How a script is started without a launcher in front: from a folder, "" for the present one, by its name there."""

    folder: str
    script: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accumulation:
    """What memory and traffic of a training depend on beside its config.

    ``optimizer`` is the name of the script's optimizer ("AdamW"), ``params`` the arguments by name that switch states of
    it on ("momentum"). ``accumulates``: gradients of several micro-batches
    make a step, ``micro_batches`` of them where that is a known number. ``sends_each``: DDP sent them at each. ``stage``
    is the expression that gives the ZeRO stage when the script runs; "" where the config has it.
    """

    optimizer: str
    params: Mapping[str, Any] = field(default_factory=dict)
    accumulates: bool = False
    micro_batches: int | None = None
    sends_each: bool = True
    stage: str = ""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a migration of one file gives: nothing is written yet.

    ``new_source`` holds the encoded bytes of the converted file, or None where the file stays as it is. ``config`` is
    the strict-JSON DeepSpeed config to write beside the entry script. ``launch`` holds one shell command per launcher,
    ``start`` what became of the script's own way to start processes, ``trial`` how ``verify`` starts it (None where it
    has no way to). ``placeholders`` are the words of the commands that
    the person has to replace by values, as the script does not start without them. ``notes`` are the changes that behave
    differently under DeepSpeed.
    """

    path: str
    status: Status
    changes: tuple[Change, ...] = ()
    diff: str = ""
    new_source: bytes | None = None
    config: dict[str, Any] | None = None
    launch: tuple[str, ...] = ()
    notes: tuple[Change, ...] = field(default=())
    start: Start | None = None
    trial: Trial | None = None
    placeholders: tuple[str, ...] = ()
    training: Accumulation | None = None
