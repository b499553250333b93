"""Runs many small distributed jobs without paying for ``import torch, deepspeed`` each time.

The process imports the libraries once, starts no thread and no process group, and then reads one JSON object per
line from stdin: ``{"script", "argv": [[...] per rank], "env": [{...} per rank], "cwd", "output", "timeout",
"may_hang"}``. For each it forks one child per rank, which becomes the leader of its own session, takes over the
environment, the folder and the arguments, sends everything it prints to ``output/rank<N>.txt`` and executes the
script as ``__main__``. A line ``{"returncodes", "timed_out", "seconds"}`` on stdout answers each job.

A child leaves with ``os._exit`` as soon as the script has ended and never takes the process group down, because
gloo now and then aborts or hangs there, also under plain DDP. On a timeout every rank writes the stack of its threads
before it is killed. With ``may_hang`` the time is over as soon as every process has slept for a while.

Usage: ``python runner.py torch|deepspeed``. Kept free of imports from this package: the interpreter that has torch
need not have anything else that the tests use.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

IMPORTED_BY_INITIALIZE = ("deepspeed.runtime.zero.muon.muon_optimizer", "deepspeed.runtime.zero.stage3")
"""What ``deepspeed.initialize`` imports on its first call; the first pulls in most of torch's compiler, in a second."""

GRACE_SECONDS = 3.0
"""How long the other ranks may go on after one has failed; torchrun ends them as well."""

IDLE_SECONDS = 2.0
"""How long ranks that wait for each other sleep before they are said to hang."""


def import_libraries(flavour: str) -> None:
    """Import what the scripts will import lazily too, and check that forking afterwards is safe."""
    for module in ("torch._dynamo", "torch.distributed", "torch.nn.parallel", "torch.utils.data"):
        importlib.import_module(module)
    importlib.import_module("torch").set_num_threads(1)
    if flavour == "deepspeed":
        deepspeed = importlib.import_module("deepspeed")
        assert deepspeed.ops.__compatible_ops__  # looking for compilers takes a moment, and is done once
        for module in IMPORTED_BY_INITIALIZE:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
    gc.freeze()  # DeepSpeed collects garbage, which would copy all that forked processes share
    tasks = Path("/proc/self/task")
    threads = len(list(tasks.iterdir())) if tasks.is_dir() else 1
    if threads != 1:
        raise RuntimeError(f"importing the libraries started {threads - 1} threads: forking is not safe")


def keep_process_group() -> None:
    """Make ``destroy_process_group`` check that there is a group, and leave it alone."""
    dist: Any = importlib.import_module("torch.distributed")
    destroy = dist.destroy_process_group

    def destroy_process_group(group: Any = None) -> None:
        if not dist.is_initialized():
            destroy(group)

    dist.destroy_process_group = dist.distributed_c10d.destroy_process_group = destroy_process_group


def take_over_output(path: Path) -> None:
    """Let the standard streams of this process be an empty input and the file at ``path``."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def run_rank(job: dict[str, Any], rank: int) -> None:
    """The life of one forked child. Never returns."""
    code = 1
    try:
        os.setsid()
        take_over_output(Path(job["output"], f"rank{rank}.txt"))
        os.environ.update(job["env"][rank])
        os.chdir(job["cwd"])
        sys.argv = [job["script"], *job["argv"][rank]]
        sys.path[0] = str(Path(job["script"]).parent)
        keep_process_group()
        runpy.run_path(job["script"], run_name="__main__")
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - what the script raised is what the test is about
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def kill(pids: list[int], sig: int) -> None:
    """Send a signal to the process group of each child; a child that is gone is no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, sig)


class Idleness:
    """Whether all processes of some sessions sleep, and have for a while; one that wants the processor is not idle."""

    def __init__(self, sessions: list[int]) -> None:
        self._sessions = {str(session) for session in sessions}
        self._seen: list[tuple[str, ...]] = []
        self._since = self._looked = time.monotonic()

    def lasts(self) -> bool:
        """Look again, twice in a second at most."""
        now = time.monotonic()
        if now - self._looked < IDLE_SECONDS / 4:
            return False
        self._looked = now
        seen = sorted(self._look())
        if seen != self._seen or any(state in "RD" for _, state, *_ in seen):
            self._seen, self._since = seen, now
        return now - self._since > IDLE_SECONDS

    def _look(self) -> Iterator[tuple[str, ...]]:
        """Yield number, state and times of each thread."""
        for file in Path("/proc").glob("[0-9]*/task/*/stat"):
            with contextlib.suppress(OSError):
                words = file.read_text(errors="replace").rpartition(")")[2].split()
                if words[3] in self._sessions:
                    yield file.parent.name, words[0], words[11], words[12]


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Fork the ranks of one job and wait for them."""
    start = time.monotonic()
    deadline = start + job["timeout"]
    pids: list[int] = []
    for rank in range(len(job["argv"])):
        pid = os.fork()
        if pid == 0:
            run_rank(job, rank)
        pids.append(pid)
    codes: dict[int, int] = {}
    timed_out = False
    idleness = Idleness(pids) if job.get("may_hang") else None
    while len(codes) < len(pids):
        for pid in pids:
            if pid not in codes:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                    if codes[pid] != 0:
                        deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
        if idleness is not None and len(codes) < len(pids) and idleness.lasts():
            deadline = 0.0
        if len(codes) < len(pids) and time.monotonic() > deadline:
            timed_out = not any(codes.values())
            waiting = [pid for pid in pids if pid not in codes]
            kill(waiting, signal.SIGUSR1)
            time.sleep(0.3)
            kill(waiting, signal.SIGKILL)
            for pid in waiting:
                codes[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            break
        time.sleep(0.004)
    return {
        "returncodes": [codes[pid] for pid in pids],
        "timed_out": timed_out,
        "seconds": time.monotonic() - start,
    }


def main() -> None:
    """Serve jobs until stdin closes."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the libraries print must not be taken for an answer
    import_libraries(sys.argv[1])
    print(json.dumps({"ready": True}), file=answers)
    while line := sys.stdin.readline():
        print(json.dumps(run_job(json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
