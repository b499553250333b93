"""Types every command of the guides, in their order, in a folder with the files that they show.

The nodes of a cluster are this machine: ``node1`` and ``node2`` are two of its names, and ``cluster/`` stands for
pdsh, ssh and SLURM. The real DeepSpeed loads every config.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guides import TRAINING, blocks, guides

from .launching import HERE, free_port, tells_of_an_abort, torch_python, training_environment

pytestmark = [pytest.mark.e2e, pytest.mark.deepspeed, pytest.mark.xdist_group("training")]
EXAMPLES = HERE.parents[1] / "examples"
PATIENCE = 300
NEEDS_MORE = {"nvme.json": "the async_io extension and a disk", "ds_auto.json": "Transformers, which fills it"}
_PORT = re.compile(r"(--master_port |MASTER_PORT=)\d+")


def environment(folder: Path) -> dict[str, str]:
    """Return what a person's shell has: torch, DeepSpeed, dsmigrate, and a cluster on this machine."""
    programs = folder / ".programs"
    programs.mkdir()
    paths = os.pathsep.join(path for path in sys.path if path)
    (programs / "dsmigrate").write_text(
        f'#!/bin/sh\nexec env PYTHONPATH="{paths}:$PYTHONPATH" "{sys.executable}" -m dsmigrate "$@"\n', encoding="utf-8"
    )
    (programs / "dsmigrate").chmod(0o755)
    found = training_environment()
    return {**found, "PATH": os.pathsep.join([str(programs), str(HERE / "cluster"), found["PATH"]])}


def local(text: str) -> str:
    """Return a command or a file with this machine for the nodes, and a free port for the one that is shown."""
    port = free_port()
    text = _PORT.sub(lambda found: f"{found[1]}{port}", text)
    return text.replace("node1", "localhost").replace("node2", "127.0.0.1")


def typed(command: str, folder: Path, shell: dict[str, str]) -> tuple[int, str]:
    """Run one command line as a person would; return its exit code and what it printed."""
    process = subprocess.Popen(
        ["bash", "-c", f"{local(command)}; code=$?; wait; exit $code"],
        cwd=folder,
        env=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        pytest.fail(f"{command}\ndid not end\n{said[-3000:]}")
    return process.returncode, said


@pytest.mark.parametrize("path", guides(), ids=lambda path: path.stem)
def test_every_command_does_what_the_guide_says(path: Path, tmp_path: Path) -> None:
    shell = environment(tmp_path)
    for name in ("train.py", "original.py"):
        shutil.copy(EXAMPLES / TRAINING, tmp_path / name)
    ran = 0
    for block in blocks(path):
        if block.file is not None:
            text = block.text if block.language == "json" else local(block.text)
            (tmp_path / block.file).write_text(text, encoding="utf-8")
        if block.language != "sh":
            continue
        for command, status in block.commands:
            code, said = typed(command, tmp_path, shell)
            if code != status and tells_of_an_abort(said) and "Traceback" not in said:
                code, said = typed(command, tmp_path, shell)
            assert code == status, f"{command}\n{said[-3000:]}"
            ran += 1
    assert ran


def test_deepspeed_takes_every_config_that_has_no_fault() -> None:
    configs = {
        f"{path.stem}:{block.file}": json.loads(block.text)
        for path in guides()
        for block in blocks(path)
        if block.language == "json" and not block.codes and not block.options and block.file not in NEEDS_MORE
    }
    for config in configs.values():  # the judge is one process
        for key in ("train_batch_size", "gradient_accumulation_steps"):
            config.pop(key, None)
    judge = subprocess.run(
        [torch_python(), str(HERE / "config_judge.py"), str(free_port())],
        input="".join(f"{json.dumps(config)}\n" for config in configs.values()),
        env=training_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    answers = dict(zip(configs, judge.stdout.splitlines(), strict=True))
    assert {name: answer for name, answer in answers.items() if answer != "ok"} == {}
