"""Lets runs of `dsmigrate verify` start their processes from a warm one; see `warm.py`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from dsmigrate.verify import launching
from dsmigrate.verify.launching import Launch, Start

from .launching import HERE, torch_python, training_environment

_SCRIPT = str(HERE / "warm.py")


@contextmanager
def warm(folder: Path) -> Iterator[None]:
    """Start scripts warm as long as this lasts; launchers stay as they are."""
    path = str(folder / "warm.socket")
    environment = {**launching.base_environment(torch_python(), cpu=True), **training_environment()}
    command = [torch_python(), _SCRIPT, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{torch_python()} cannot train: it needs torch and deepspeed")
        cold = launching.plan

        def plan(**words: Any) -> Launch:
            found = cold(**words)
            if words["kind"] not in {"ranks", "python"}:
                return found
            client = (torch_python(), "-S", "-E", _SCRIPT, path)
            return Launch(
                tuple(Start((*client, *start.command[1:]), start.environment) for start in found.starts), found.shown
            )

        beside = {"PYTHONPATH": training_environment()["PYTHONPATH"]}  # what a script spawns starts cold
        with mock.patch.object(launching, "plan", plan), mock.patch.dict(os.environ, beside):
            yield
        server.kill()
