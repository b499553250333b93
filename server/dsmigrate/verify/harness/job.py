"""What the parent asks of a training process: a JSON file named by an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "DSMIGRATE_VERIFY_JOB"


@dataclass(frozen=True)
class Job:
    """One run.

    ``trace`` is the folder for the records of all ranks; ``steps`` the optimizer steps after which to stop;
    ``save_after`` the step from which on the run stops as soon as a checkpoint is saved (None: never). ``pretend``
    makes a machine without CUDA look to the script as if it had some. ``work`` is the copy of ``origin`` that the
    script runs in. ``zero_stage`` overrides what the config says. ``port`` is free. ``spawns`` says that the original
    spawns its processes, so that they do not know their rank from the start. ``saved`` are the checkpoints of the run
    that this one continues.
    """

    trace: str
    work: str
    origin: str
    steps: int
    processes: int
    port: int
    seed: int = 0
    pretend: bool = False
    cpu: bool = True
    save_after: int | None = None
    zero_stage: int | None = None
    links: bool = True
    spawns: bool = False
    saved: tuple[str, ...] = ()


def read_job() -> Job:
    """Return the job of this process; KeyError where there is none."""
    return Job(**json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8")))
