"""Puts everything in place at the start of a process, before a line of the script has run."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from . import deepspeed_hooks, determinism, shim, torch_hooks
from .accelerator import TARGET, answer_for_the_accelerator
from .calls import hook_calls
from .crashes import remember_crashes
from .imports import AfterImport
from .job import Job, read_job
from .links import protect
from .network import hook_network
from .place import knows_its_rank, rank
from .reads import note_reads
from .recorder import Recorder


def boot() -> None:
    """Read the job, prepare paths and signals, and wait for torch and deepspeed."""
    job = read_job()
    _answer_where_it_stands(job)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    _look_in_the_copy(job)
    if job.links:
        protect(job.work)
    if job.saved:
        note_reads(job)
    holder: list[Recorder] = []

    def torch_is_there(torch: Any) -> None:
        recorder = Recorder(torch, job)
        holder.append(recorder)
        determinism.settle(torch, cpu=job.cpu)
        determinism.fix_fresh_seeds(torch, job.seed)
        determinism.seed_everything(torch, job.seed)
        hook_network(torch, job, lambda number: _joined(torch, job, number))
        if job.pretend:
            shim.pretend(torch, job)
        recorder.watch = hook_calls(torch, recorder)
        torch_hooks.hook_torch(torch, recorder)
        remember_crashes(recorder)

    patches = {
        "torch": torch_is_there,
        "deepspeed.runtime.config": lambda module: deepspeed_hooks.hook_config(module, job, holder[0].config),
        "deepspeed.runtime.engine": lambda module: deepspeed_hooks.hook_engine(module, holder[0]),
    }
    if job.cpu:
        patches[TARGET] = answer_for_the_accelerator
    AfterImport(patches).install()


def _answer_where_it_stands(job: Job) -> None:
    """Write the stacks of all threads into a file of this process when it is asked by a signal."""
    if hasattr(signal, "SIGUSR1"):
        stacks = (Path(job.trace) / f"stack-{os.getpid()}.txt").open("w", encoding="utf-8")
        stacks.write(f"{_born()}\n")
        stacks.flush()
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    if knows_its_rank():
        _tell_rank(job, rank())


def _born() -> str:
    """Return when this process was started, as the system counts it; "" where it does not tell."""
    with contextlib.suppress(OSError, IndexError):
        return Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return ""


def _tell_rank(job: Job, number: int) -> None:
    (Path(job.trace) / f"stack-{os.getpid()}.rank").write_text(str(number), encoding="utf-8")


def _joined(torch: Any, job: Job, number: int) -> None:
    """Say which rank this is, and seed again where the original spawns its processes.

    They had no rank before, and what their parent has seeded, as every process of the conversion does, did not reach
    them.
    """
    _tell_rank(job, number)
    if job.spawns:
        determinism.seed_everything(torch, job.seed, number)


def _look_in_the_copy(job: Job) -> None:
    """Let paths into the original folder (of an editable installation) lead into the copy."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")  # noqa: PTH100, PTH118, PTH120
    for index, entry in enumerate(sys.path):
        if entry != own and (entry == job.origin or entry.startswith(job.origin + os.sep)):
            sys.path[index] = job.work + entry[len(job.origin) :]
