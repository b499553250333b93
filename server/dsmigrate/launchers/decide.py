"""What becomes of a launch line: the least change that starts the converted script with the same processes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dsmigrate.codemod import targets
from dsmigrate.codemod.model import DEVICES, NEWEST_DEEPSPEED, Kind, Start
from dsmigrate.launchers import deepspeed_line, model
from dsmigrate.launchers.model import Launch, Script, Verdict
from dsmigrate.launchers.shell import Word

REQUIRED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What deepspeed.init_distributed looks for before it asks MPI (deepspeed/comm/comm.py)."""
_MPI = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "jsrun", "aprun", "ibrun", "prun", "mpirun_rsh"})
_OWN_RANKS = re.compile(
    r"--?(world[-_]?size|rank|node[-_]?rank|nr|n?nodes|num[-_]?nodes|dist[-_]url|init[-_]method|master[-_]?addr\w*|local[-_]rank)"
)
_NODES = re.compile(r"--?(world[-_]?size|n?nodes|num[-_]?nodes|n|node[-_]?count)")
_NODE_RANK = re.compile(r"--?(rank|node[-_]?rank|nr|machine[-_]?rank)")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around a launch.

    ``variables`` are constants of the file and ``exported`` the names it exports; ``batch`` says that SLURM runs the
    file, with so many ``tasks`` (None: not said); ``launcher`` is what the person asked for, keep or deepspeed,
    ``release`` the DeepSpeed release the result is for.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    exported: frozenset[str] = frozenset()
    batch: bool = False
    tasks: int | None = None
    launcher: str = "keep"
    release: str = NEWEST_DEEPSPEED


def decide(launch: Launch, script: Script, around: Surroundings) -> Verdict:
    """Decide about one launch of a converted script."""
    start = script.start
    if _spawns(launch, start, around):
        return _kept("stays", "the script goes on starting its own processes")
    if launch.kind == model.ACCELERATE:
        return _kept("accelerate launch stays", "it sets the same variables as torchrun; its own "
                                                "--use_deepspeed stays off, the "
                     "script makes its engine itself")  # fmt: skip
    if launch.kind == model.DEEPSPEED:
        return _kept("the deepspeed launcher stays", "it sets RANK, WORLD_SIZE, LOCAL_RANK and the address, as before")
    if launch.kind in {model.TORCHRUN, model.LAUNCH_MODULE}:
        if start.spawned and not start.switches and not start.unsure:
            return _todo(
                f"the script spawned {_said(start.count)} in each process that this starts; now the "
                f"launcher has to start "
                "them all: raise --nproc_per_node", "mp.spawn is gone from the script"
            )  # fmt: skip
        if around.launcher == "deepspeed":
            return deepspeed_line.of_torchrun(
                launch, script, around.variables, around.exported, ssh_only=not targets.holds("no_ssh", around.release)
            )
        return _kept(
            f"{launch.kind} stays",
            "deepspeed.init_distributed takes ranks, sizes and address from the variables that it sets"
            + ("; the script takes --local-rank in either spelling" if launch.kind == model.LAUNCH_MODULE else ""),
        )
    if launch.kind == model.PYTHON:
        return _python(launch, script, around)
    return _todo(
        f"`{launch.strangers[0] if launch.strangers else launch.command.words[0].text}` starts the script: "
        f"start it with "
        f"{_proposal(script)}", "what this program does to processes is not known here"
    )  # fmt: skip


def _spawns(launch: Launch, start: Start, around: Surroundings) -> bool:
    """Whether the converted script starts its processes itself from this line, as the original did."""
    if not start.own or not start.spawned:
        return False
    opaque = any(word.expanded(around.variables) is None for word in launch.arguments)
    return start.unsure or not start.switches or opaque or any(_has(launch.arguments, name) for name in start.switches)


def _python(launch: Launch, script: Script, around: Surroundings) -> Verdict:
    start = script.start
    mpi = [name for name in launch.managers if name in _MPI]
    if mpi and start.mpi:
        return Verdict("MG226", Kind.KEPT, f"{mpi[0]} keeps starting the processes",
                       "the script sets RANK, WORLD_SIZE and LOCAL_RANK from MPI's numbers")  # fmt: skip
    if mpi:
        return Verdict(
            "MG227", Kind.TODO, f"{mpi[0]} stays: install mpi4py, or give the processes {', '.join(REQUIRED)}",
            "where these variables are missing, deepspeed.init_distributed asks MPI through mpi4py",
        )  # fmt: skip
    own = {word.assigns for word in launch.in_front if word.assigns} | around.exported
    if start.slurm and ("srun" in launch.managers or around.batch):
        said = "srun keeps starting the processes" if "srun" in launch.managers else "stays"
        return Verdict("MG226", Kind.KEPT, said,
                       "the script sets RANK, WORLD_SIZE and LOCAL_RANK from SLURM's numbers")  # fmt: skip
    if own & {"RANK", "WORLD_SIZE", "LOCAL_RANK"} and not start.spawned:
        missing = [name for name in REQUIRED if name not in own]
        if not missing:
            return _kept("python stays", "every variable that deepspeed.init_distributed reads is set here")
        return _todo(f"set {', '.join(missing)} too", "without them deepspeed.init_distributed looks for MPI and fails")
    srun = "srun" in launch.managers
    if srun and not _is_one_task(launch, around):
        line = _proposal(script, "--nnodes $SLURM_NNODES --node_rank $SLURM_NODEID --master_addr "
                                 "$MASTER_ADDR --nproc_per_node "
                         + (_processes(script) or "N"))  # fmt: skip
        return _todo(
            f"let srun start one task per node, and {line} in each, inside of `srun bash -c '…'`",
            "srun sets no RANK, WORLD_SIZE and LOCAL_RANK, which DeepSpeed reads",
        )
    if launch.kind == model.PYTHON and launch.flags and set(launch.flags) != {"-u"}:
        said = " ".join(launch.flags)
        where = "the command is in a variable" if said == "in a variable" else f"torchrun starts Python without {said}"
        return _todo(f"start it with {_proposal(script)}", where)
    known = [name for name in launch.strangers if name]
    if known:
        return _todo(
            f"`{known[0]}` comes first here: start it with {_proposal(script)}", "what it does is not known here"
        )
    return _start(launch, script, around)


def _start(launch: Launch, script: Script, around: Surroundings) -> Verdict:
    """``python train.py`` becomes a launcher's line, with as many processes as the script itself had."""
    start = script.start
    opaque = [word.text for word in launch.arguments if word.expanded(around.variables) is None]
    if not start.spawned:
        ranks = [w.text for w in launch.arguments if _OWN_RANKS.fullmatch(w.text.partition("=")[0])]
        if ranks:
            return _todo(f"{ranks[0]} hands the script its ranks: start all processes with {_proposal(script)}",
                         "a converted script takes ranks and address from its launcher")  # fmt: skip
        count, said = "1", "one process, as before"
    else:
        if start.unsure:
            return _todo(f"start it with {_proposal(script)}, where it spawned",
                         "whether the script spawned processes depends on more than this line")  # fmt: skip
        given = [name for name in start.switches if _has(launch.arguments, name)]
        if start.switches and not given and opaque:
            return _todo(f"start it with {_proposal(script)} where {' or '.join(start.switches)} is given",
                         f"{opaque[0]} may contain it")  # fmt: skip
        if start.switches and not given:
            count, said = "1", f"one process, as without {' and '.join(start.switches)}"
        else:
            found = _several_nodes(launch.arguments, start.count)
            if found:
                nodes = f"--nnodes NODES --node_rank R --master_addr HOST --nproc_per_node {_processes(script) or 'N'}"
                return _todo(f"{found}: on every node, start {_proposal(script, nodes)}",
                             "several nodes; the launcher has to know all of them")  # fmt: skip
            count = _number(launch.arguments, script, opaque)
            if not count:
                return _todo(f"start it with {_proposal(script)}", "how many processes the script spawned is not known")
            said = f"{_said('gpus' if count == 'gpu' else count)}, as the script spawned"
    if around.launcher == "deepspeed":
        verdict = deepspeed_line.of_python(launch, count, said, around.variables, around.exported)
        if verdict is not None:
            return verdict
    return _torchrun(launch, count, said)


def _torchrun(launch: Launch, count: str, said: str) -> Verdict:
    first, last = launch.head
    words = launch.command.words
    options: tuple[str, ...] = ("--nproc_per_node", count)
    if launch.command.ending == "&":
        options = ("--standalone", *options)  # a port of its own: what comes next starts at the same time
    reason = "DeepSpeed reads ranks and address from the variables that a launcher sets"
    if words[first].text in {"python", "python3"}:
        return Verdict("MG221", Kind.CONVERTED, f"{words[first].text} → torchrun: {said}", reason, first, last,
                       ("torchrun", *options))  # fmt: skip
    kept = tuple(word.text for word in words[first : last + 1])
    return Verdict("MG221", Kind.CONVERTED, f"-m torch.distributed.run: {said}", reason, first, last,
                   (*kept, "-m", "torch.distributed.run", *options))  # fmt: skip


def _number(arguments: tuple[Word, ...], script: Script, opaque: list[str]) -> str:
    """What --nproc_per_node has to be, "" where that is not known."""
    start = script.start
    if start.count == DEVICES:
        return "gpu"
    if start.count.isdecimal():
        return start.count
    if not start.count:
        return ""
    given = option_value(arguments, start.count)
    if given is not None:
        return given
    if opaque:
        return ""
    return "gpu" if start.default == DEVICES else start.default


def option_value(arguments: tuple[Word, ...], name: str) -> str | None:
    """What follows an option, as it is written; None where the option is not there."""
    for index, word in enumerate(arguments):
        if word.text.startswith(f"{name}="):
            return word.text.partition("=")[2]
        if word.text == name and index + 1 < len(arguments):
            return arguments[index + 1].text
    return None


def _has(arguments: tuple[Word, ...], name: str) -> bool:
    return any(word.text == name for word in arguments)


def _several_nodes(arguments: tuple[Word, ...], count: str) -> str:
    """The option that says that there are several nodes, or that this is not the first; "" where all are on one."""
    for index, word in enumerate(arguments):
        name, equals, text = word.text.partition("=")
        value = text if equals else arguments[index + 1].text if index + 1 < len(arguments) else ""
        if name == count:
            continue
        if (_NODES.fullmatch(name) and value != "1") or (_NODE_RANK.fullmatch(name) and value != "0"):
            return f"{name} {value}"
    return ""


def _is_one_task(launch: Launch, around: Surroundings) -> bool:
    """Whether srun starts the script once: it says so, or the batch file does."""
    asked: dict[str, str] = {}
    words = launch.in_front
    for index, word in enumerate(words):
        name, equals, text = word.text.partition("=")
        short = re.fullmatch(r"-([nN])(\d+)", word.text)
        if short:
            asked[short[1]] = short[2]
        elif name in {"-n", "--ntasks", "-N", "--nodes", "--ntasks-per-node"}:
            value = text if equals else words[index + 1].text if index + 1 < len(words) else ""
            asked[{"--ntasks": "n", "--nodes": "N", "--ntasks-per-node": "per"}.get(name, name[1:])] = value
    if "n" in asked:
        return asked["n"] == "1"
    if "N" in asked or "per" in asked:
        return asked.get("N") == "1" and asked.get("per", "1") == "1"
    return around.tasks == 1


def _processes(script: Script) -> str:
    count = script.start.count
    return "gpu" if count == DEVICES else count if count.isdecimal() else ""


def _proposal(script: Script, options: str = "") -> str:
    options = options or f"--nproc_per_node {_processes(script) or 'N'}"
    return f"`torchrun {options} {script.name} …`"


def _said(count: str) -> str:
    if count in {DEVICES, "gpu"}:
        return "one process per visible GPU"
    return f"{count} process" + ("" if count == "1" else "es")


def _kept(message: str, reason: str) -> Verdict:
    return Verdict("MG223", Kind.KEPT, message, reason)


def _todo(message: str, reason: str) -> Verdict:
    return Verdict("MG224", Kind.TODO, message, reason)
