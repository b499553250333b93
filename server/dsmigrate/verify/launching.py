"""The commands that start a script: as torchrun, the deepspeed launcher or plain Python would."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SPAWNS = re.compile(
    r"\bmp\.spawn\(|\bmultiprocessing\.spawn\(|\bmp\.Process\(|\bstart_processes\(|^\s*spawn\(", re.MULTILINE
)
_LOCAL_RANK = re.compile(r"add_argument\(\s*['\"](--local[_-]rank)['\"]")
_PLACE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
_FOREIGN = ("SLURM_", "TORCHELASTIC", "OMPI_", "PMI_", "PMIX_")
_SLURM = re.compile(r"""env(?:iron)?(?:\.get\(|\[|\()\s*['"]SLURM_(?:PROCID|LOCALID)['"]""")
_RANK = re.compile(r"""['"](?:LOCAL_)?RANK['"]""")
HARNESS = Path(__file__).resolve().parent / "harness" / "site"


@dataclass(frozen=True, slots=True)
class Start:
    """One process to start."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: one process per rank, or one launcher; ``shown`` is how a person would type it."""

    starts: tuple[Start, ...]
    shown: str


SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory lies, for every user


def free_shared_memory(port: int) -> None:
    """Remove what processes that met at a port have left: DeepSpeed never unlinks its 66 MiB per process on CPUs."""
    for file in SHARED_MEMORY.glob(f"deepspeed_allreduce_buffer_*_{port}_*"):
        with contextlib.suppress(OSError):
            file.unlink()


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Give a TCP port of this machine that is free, and let nobody get it by chance while the block runs.

    Seconds pass before the first process listens there. On Linux a socket that is bound but does not listen keeps the
    system from giving the port to others that ask for any (gloo's, in another run), and lets who asks for it by number
    listen. Other systems would refuse them as well.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("", 0))
        port = int(keeper.getsockname()[1])
        if sys.platform != "linux":
            keeper.close()
        yield port


def kind_of(source: str, asked: str) -> str:
    """Return how a script is started: ``asked``, or by what it does itself.

    "ranks" is torchrun without its agent, "srun" the environment of srun's tasks, for a script that reads its rank
    there and nowhere else.
    """
    if asked != "auto":
        return asked
    if _SPAWNS.search(source):
        return "python"
    return "srun" if _SLURM.search(source) and not _RANK.search(source) else "ranks"


def plan(
    *,
    python: str,
    script: str,
    arguments: Sequence[str],
    kind: str,
    processes: int,
    port: int,
    environment: Mapping[str, str],
    source: str,
) -> Launch:
    """Return the launch of a script of kind "ranks", "torchrun", "deepspeed", "srun" or "python"."""
    run = (python, script, *arguments)
    if kind == "python":
        return Launch((Start(run, environment),), " ".join(("python", script, *arguments)))
    if kind == "torchrun":
        words = ("-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--nnodes", "1")
        place = ("--master_addr", "127.0.0.1", "--master_port", str(port))
        shown = f"torchrun --nproc_per_node {processes} {' '.join(run[1:])}"
        return Launch((Start((python, *words, *place, *run[1:]), environment),), shown)
    if kind == "deepspeed":
        return Launch(
            (Start(_deepspeed(python, run[1:], processes, port, source), environment),), _shown(run, processes)
        )
    if kind == "srun":
        places = (_task(rank, processes, port) for rank in range(processes))
        tasks = tuple(Start(run, {**environment, **task}) for task in places)
        return Launch(tasks, f"srun --ntasks {processes} python {' '.join(run[1:])}")
    argument = _local_rank_argument(source)
    starts = []
    for rank in range(processes):
        extra = (f"{argument}={rank}",) if argument else ()
        starts.append(Start((python, script, *extra, *arguments), {**environment, **_place(rank, processes, port)}))
    launcher = "python -m torch.distributed.launch" if argument else "torchrun"
    return Launch(tuple(starts), f"{launcher} --nproc_per_node {processes} {' '.join(run[1:])}")


def base_environment(python: str, *, cpu: bool) -> dict[str, str]:
    """Return the environment of every run: ours without what another launcher has put there.

    The programs beside ``python`` come first: DeepSpeed compiles with the ninja it finds, and each version of ninja
    compiles anew what another one has left.
    """
    found = {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN) and name not in _PLACE}
    paths = [str(HARNESS), *filter(None, [os.environ.get("PYTHONPATH")])]
    programs = [str(Path(python).parent.absolute()), *filter(None, [found.get("PATH")])]
    found |= {
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TORCHDYNAMO_DISABLE": "1",
        "WANDB_MODE": "disabled",
    }
    if cpu:
        found["PYTORCH_JIT"] = "0"  # what stands in for a function of torch has no source for its compiler
        found |= {"CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"}
    return found


def _place(rank: int, processes: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _task(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return what srun gives a task of a job on this one node; batch scripts export address and port themselves."""
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NODEID": "0",
        "SLURM_NTASKS": str(processes),
        "SLURM_NPROCS": str(processes),
        "SLURM_NTASKS_PER_NODE": str(processes),
        "SLURM_TASKS_PER_NODE": str(processes),
        "SLURM_NNODES": "1",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_ID": str(port),
        "SLURM_JOBID": str(port),
        "SLURM_JOB_NODELIST": "127.0.0.1",
        "SLURM_NODELIST": "127.0.0.1",
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _local_rank_argument(source: str) -> str | None:
    """Return the argument that torch.distributed.launch gives, where the script takes it and looks nowhere else."""
    found = _LOCAL_RANK.search(source)
    return found[1] if found and "LOCAL_RANK" not in source else None


def _deepspeed(python: str, run: Sequence[str], processes: int, port: int, source: str) -> tuple[str, ...]:
    """Return the command of DeepSpeed's launcher for one node, which ``deepspeed`` starts on every node."""
    world = base64.urlsafe_b64encode(json.dumps({"localhost": list(range(processes))}).encode()).decode()
    place = (f"--world_info={world}", "--master_addr=127.0.0.1", f"--master_port={port}")
    quiet = () if _LOCAL_RANK.search(source) else ("--no_local_rank",)
    return (python, "-m", "deepspeed.launcher.launch", *place, *quiet, *run)


def _shown(run: Sequence[str], processes: int) -> str:
    return f"deepspeed --num_gpus {processes} {' '.join(run[1:])}"
