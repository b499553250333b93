"""Asks dsmigrate itself for a conversion, by its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dsmigrate
from dsmigrate.verify.model import VerifyError

_SECONDS = 300


def convert(script: Path, output: Path, stage: int | None) -> tuple[str, ...]:
    """Let dsmigrate write its conversion of ``script`` over what lies in ``output``; return what it left for a person.

    Settings files count as they do for a migration. Raises VerifyError, with the reasons, where it does not convert.
    """
    package = str(Path(dsmigrate.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-m", "dsmigrate", "migrate", str(script), "--output", str(output), "--force"]
    if stage is not None:
        command += ["--zero-stage", str(stage)]
    done = subprocess.run(  # noqa: S603 - dsmigrate
        [*command, "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise VerifyError(f"{script} could not be converted: {done.stderr.strip()[-2000:]}") from None
    entry = next((file for file in report["files"] if Path(file["path"]).name == script.name), report["files"][0])
    if not report.get("written"):
        reasons = [
            f"{file['path']}:{change['line']}: {change['code']} {change['message']}"
            for file in report["files"]
            for change in file["changes"]
            if change["kind"] == "refused"
        ]
        said = "; ".join(reasons) or "nothing of DistributedDataParallel to convert in it"
        raise VerifyError(f"{script} is {entry['status']}, so that there is nothing to verify: {said}")
    return tuple(
        f"{file['path']}:{change['line']}: {change['code']} {change['message']}"
        for file in report["files"]
        for change in file["changes"]
        if change["kind"] == "todo"
    )
