"""What a repository can put in a file's place, and every command beside it.

python -m tests.files.hostile      prints exit code, seconds and MiB of each command beside each kind of file
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SCRIPT = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
import helper
import odd

torch.distributed.init_process_group("nccl")
model = DDP(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in helper.batches():
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
CONFIG = '{"train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}\n'
EVIDENCE = (
    "requirements.txt", "requirements-dev.txt", "requirements/train.txt", "setup.cfg", "setup.py",
    "environment.yml", "constraints.txt", "Dockerfile", "train.Dockerfile", "uv.lock", "poetry.lock", "pdm.lock",
    "Pipfile.lock", "helper.py", "odd.py", "odd/__init__.py", "run.sh", "Makefile", "README.md", "job.slurm",
    "launch.yml", ".gitattributes", ".github/workflows/ci.yml", "docker-compose.yml", "hostfile", "other.json",
    "other.yaml",
)  # fmt: skip
"""Names that some command reads where they lie; settings files stand alone, as commands stop at an odd one."""


def to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def to_the_terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def to_a_kernel_log(path: Path) -> None:
    """Make a link to a regular file that is never read to its end."""
    path.symlink_to("/proc/kmsg")


def to_a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


KINDS: dict[str, Callable[[Path], None]] = {
    "link to /dev/zero": to_zero,
    "named pipe": os.mkfifo,
    "socket": to_a_socket,
    "directory": Path.mkdir,
    "20 GiB": huge,
    "link to /dev/tty": to_the_terminal,
    "link to /proc/kmsg": to_a_kernel_log,
    "link to itself": lambda path: path.symlink_to(path.name),
}
BESIDE = {
    "check a config": ["check", "ds_config.json"],
    "check the folder": ["check", "."],
    "fix": ["check", "--fix", "ds_config.json"],
    "migrate": ["train.py"],
    "migrate with launchers": ["--with-launchers", "train.py"],
    "migrate the folder": ["."],
    "diff": ["diff", "ds_config.json", "new.json"],
    "convert": ["convert", "--to", "accelerate", "ds_config.json"],
    "memory": ["memory", "ds_config.json", "--params", "1b", "--gpus", "8"],
    "explain": ["explain", "zero_optimization.stage"],
}
"""Commands on good files that lie beside odd ones."""
ON_IT = {
    "check": ["check", "odd.json"],
    "check yaml": ["check", "odd.yaml"],
    "check a script": ["check", "odd_script.py"],
    "diff": ["diff", "odd.json", "new.json"],
    "diff with a base": ["diff", "ds_config.json", "new.json", "--base", "odd.json"],
    "migrate": ["odd_script.py"],
    "a config of the person": ["--config", "odd.json", "train.py"],
    "the config in its place": ["--config-name", "odd.json", "train.py"],
    "convert": ["convert", "--to", "accelerate", "odd.json"],
    "convert from yaml": ["convert", "--to", "deepspeed", "odd.yaml"],
    "memory": ["memory", "odd.json", "--params", "1b", "--gpus", "8"],
    "memory of a model": ["memory", "ds_config.json", "--model", "odd.json", "--gpus", "8"],
    "memory of weights": ["memory", "ds_config.json", "--model", "odd.safetensors", "--gpus", "8"],
    "recommend": ["recommend", "--params", "1b", "--gpus", "8", "--gpu-memory", "80", "--output", "odd.json"],
    "verify": ["verify", "odd_script.py"],
}
"""Commands that are given an odd file."""
SETTINGS = {
    "check": ["check", "ds_config.json"],
    "migrate": ["train.py"],
    "diff": ["diff", "ds_config.json", "new.json"],
}
"""Commands in a folder whose settings file is odd."""


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    output: str
    seconds: float
    mebibytes: float


def folder(where: Path, kind: str, names: tuple[str, ...]) -> Path:
    """Make a project in which the files of ``names`` are of an odd kind."""
    (where / "ds_config.json").write_text(CONFIG)
    (where / "new.json").write_text(CONFIG.replace("4", "8"))
    (where / "train.py").write_text(SCRIPT)
    for name in names:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        if not (where / name).exists():
            KINDS[kind](where / name)
    return where


_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "server")}
_WAITER = """
import json, os, subprocess, sys, threading, time
begin = time.monotonic()
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
killer = threading.Timer(300, process.kill)  # one that hangs ends, so that a test of it does
killer.start()
_, status, used = os.wait4(process.pid, 0)
killer.cancel()
figures = [os.waitstatus_to_exitcode(status), time.monotonic() - begin, used.ru_maxrss / 1024]
os.write(int(sys.argv[1]), json.dumps(figures).encode())
"""
"""Waits for a command in a process of its own: a child's peak of memory begins with that of who started it."""


def run(arguments: list[str], where: Path) -> Ran:
    """Run a command as a person does; one that hangs is killed after five minutes."""
    reading, writing = os.pipe()
    command = [sys.executable, "-c", _WAITER, str(writing), sys.executable, "-m", "dsmigrate", *arguments]
    with os.fdopen(reading) as figures, tempfile.TemporaryFile() as stream:
        subprocess.run(
            command, cwd=where, stdout=stream, stderr=stream, pass_fds=[writing], check=True, env=_ENVIRONMENT
        )
        os.close(writing)
        code, seconds, mebibytes = json.load(figures)
        stream.seek(0)
        return Ran(code, stream.read().decode("utf-8", "replace"), seconds, mebibytes)


def cases() -> Iterator[tuple[str, str, tuple[str, ...], list[str]]]:
    """Yield, for every kind of file, each command: kind, what is tried, the odd names, arguments."""
    for kind in KINDS:
        for name, arguments in BESIDE.items():
            yield kind, f"{name}, beside", EVIDENCE, arguments
        for name, arguments in ON_IT.items():
            yield kind, name, tuple(word for word in arguments if word.startswith("odd")), arguments
        for name, arguments in SETTINGS.items():
            for settings in ("dsmigrate.toml", "pyproject.toml"):
                yield kind, f"{name}, {settings}", (settings,), arguments


def few() -> Iterator[tuple[str, str, tuple[str, ...], list[str]]]:
    """Yield every kind beside every command, and a third of the kinds under each name: one reader takes them all."""
    for index, case in enumerate(cases()):
        if case[1].endswith(", beside") or (index + list(KINDS).index(case[0])) % 3 == 0:
            yield case


def main() -> int:
    """Run every case and print its figures; 1 where one of them took more than 2 s or 300 MiB, or was killed."""
    bad = 0
    for kind, name, names, arguments in cases():
        with tempfile.TemporaryDirectory() as place:
            ran = run(arguments, folder(Path(place), kind, names))
        failed = ran.code not in {0, 1, 2} or "Traceback" in ran.output or ran.seconds > 2 or ran.mebibytes > 300
        bad += failed
        said = ran.output.strip().splitlines()
        figures = f"exit {ran.code} {ran.seconds:5.2f} s {ran.mebibytes:5.0f} MiB"
        print(f"{'FAILED ' if failed else ''}{kind:20} {name:32} {figures}  {said[-1][:110] if said else ''}")
    print(f"{bad} of {sum(1 for _ in cases())} cases failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
