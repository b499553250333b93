"""Finds the Python that has torch: dsmigrate itself may run in another one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.verify.model import VerifyError

_ASK = """
import importlib.metadata as m, json
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
print(json.dumps([version("torch"), version("deepspeed")]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with the versions of what it has."""

    path: str
    torch: str
    deepspeed: str


def find(asked: str | None) -> Interpreter:
    """Return the interpreter that was asked for, else the first of ours and those on PATH with both packages.

    Raises VerifyError where there is none.
    """
    tried = [asked] if asked else [sys.executable, *filter(None, map(shutil.which, ("python", "python3")))]
    lacking = []
    for path in dict.fromkeys(tried):
        torch, deepspeed = _ask(path)
        if torch and deepspeed:
            return Interpreter(path, torch, deepspeed)
        lacking.append(f"{path} has {f'torch {torch} but no deepspeed' if torch else 'no torch'}")
    raise VerifyError(
        f"training needs a Python with torch and deepspeed: {'; '.join(lacking)}. Name one with --python PATH"
    )


def _ask(path: str) -> tuple[str | None, str | None]:
    if not (Path(path).is_file() or shutil.which(path)):
        raise VerifyError(f"--python {path}: no such interpreter")
    try:
        found = subprocess.run(  # noqa: S603 - the interpreter that the person named
            [path, "-c", _ASK], capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)
        )
        torch, deepspeed = json.loads(found.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, None
    return torch, deepspeed
