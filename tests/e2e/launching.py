"""Starts training scripts: in warm processes, or as a person would.

``DSMIGRATE_TORCH_PYTHON`` names the interpreter that has torch and deepspeed; this one by default. With
``DSMIGRATE_E2E_RELEASE``, the DeepSpeed release that it has, scripts are converted for that one; with
``DSMIGRATE_E2E_SOURCES``, a folder that holds ``deepspeed``, that is imported instead of the installed one. A busy
machine needs more than 60 seconds for a run: ``DSMIGRATE_E2E_TIMEOUT``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.verify.failures import is_the_network
from dsmigrate.verify.launching import reserved_port
from tests.support.events import PATIENCE

from .readings import Reading, read

HERE = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 600.0
"""After that a training is said to hang; DeepSpeed compiles an operator in its first run on a machine."""
ABORTED = -signal.SIGABRT
_ABORT = re.compile(r"SIGABRT|exits with return code = -6|terminate called without an active exception")
"""How torchrun, DeepSpeed's launcher and the C++ runtime tell of a process that aborted."""
PORTS_RESERVED = 16
NEEDS_INTEL_UNTIL = (0, 14, 0)
"""Up to this release DeepSpeed trains on a CPU only with Intel's extension of torch; see ``older_site``."""


def torch_python() -> str:
    """The interpreter that runs the training scripts."""
    return os.environ.get("DSMIGRATE_TORCH_PYTHON", sys.executable)


def target_release() -> str | None:
    """The DeepSpeed release to convert for; None for the newest."""
    return os.environ.get("DSMIGRATE_E2E_RELEASE")


def _site_folders() -> list[str]:
    """What every training process finds first when it imports something."""
    release = target_release()
    is_old = release is not None and tuple(map(int, release.split("."))) <= NEEDS_INTEL_UNTIL
    sources = os.environ.get("DSMIGRATE_E2E_SOURCES")
    return [str(HERE / "site"), *([str(HERE / "older_site")] if is_old else []), *([sources] if sources else [])]


def training_environment() -> dict[str, str]:
    """The environment of every training process: CPU only, one thread, compiled extensions kept between sessions."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dsmigrate" / "torch_extensions"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TORCHELASTIC"))}
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        environment.pop(name, None)
    environment |= {
        "CUDA_VISIBLE_DEVICES": "",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(torch_python()).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(_site_folders()),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore::FutureWarning",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    environment.setdefault("TORCH_EXTENSIONS_DIR", str(cache))
    return environment


_reserved: deque[ExitStack] = deque()


def free_port() -> int:
    """A TCP port of this machine that nothing listens on; no other socket gets it before 16 more were asked for."""
    stack = ExitStack()
    port = stack.enter_context(reserved_port())
    _reserved.append(stack)
    if len(_reserved) > PORTS_RESERVED:
        _reserved.popleft().close()
    return port


def tells_of_an_abort(text: str) -> bool:
    """Whether what was printed says that a process aborted, as gloo does now and then at interpreter exit."""
    return _ABORT.search(text) is not None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run did: exit codes per rank, the text of each rank, and where it ran."""

    returncodes: tuple[int, ...]
    timed_out: bool
    texts: tuple[str, ...]
    folder: Path
    seconds: float

    @property
    def aborted(self) -> bool:
        """Whether a process was ended by SIGABRT, as gloo does now and then at interpreter exit."""
        return ABORTED in self.returncodes or any(map(tells_of_an_abort, self.texts))

    @property
    def lost_each_other(self) -> bool:
        """Whether the ranks ended for no reason but a connection between them that broke."""
        return not self.timed_out and is_the_network(self.returncodes, self.texts)

    @property
    def succeeded(self) -> bool:
        """Whether it ended well. An abort at exit is not held against a run: what it printed decides."""
        return not self.timed_out and (self.aborted or not any(self.returncodes))

    @property
    def readings(self) -> tuple[Reading, ...]:
        return read(self.texts[0])

    def excerpt(self, characters: int = 3000) -> str:
        """The end of what each rank printed."""
        parts = [f"exit codes {self.returncodes}{', timed out' if self.timed_out else ''}, in {self.folder}"]
        parts += [f"--- rank {rank}\n{text[-characters:]}" for rank, text in enumerate(self.texts)]
        return "\n".join(parts)


class Worker:
    """A warm process (`runner.py`) that forks the ranks of one job after the other."""

    def __init__(self, flavour: str) -> None:
        self._process = subprocess.Popen(
            [torch_python(), str(HERE / "runner.py"), flavour],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=training_environment(),
            text=True,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise RuntimeError(
                f"{torch_python()} cannot run the training scripts (exit code {code}): it needs torch and deepspeed. "
                "Set DSMIGRATE_TORCH_PYTHON to an interpreter that has them."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE)


def rank_environment(rank: int, ranks: int, port: int, launch: str) -> dict[str, str]:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if launch == "slurm":
        return place | {
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_NTASKS": str(ranks),
            "SLURM_NODELIST": "localhost",
        }
    return place | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "LOCAL_SIZE": str(ranks),  # or DeepSpeed up to 0.14.3 runs numactl to count what it may use
        "GROUP_RANK": "0",
    }


def launch_cold(command: Sequence[str], folder: Path, timeout: float = TIMEOUT_SECONDS) -> Outcome:
    """Run a launcher of its own, as a person would type it; its output is taken for that of rank 0."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=training_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    timed_out = False
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
    return Outcome((process.returncode,), timed_out, (text,), folder, time.monotonic() - start)
