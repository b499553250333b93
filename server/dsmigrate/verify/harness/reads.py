"""Notes which checkpoints of the run before are read: one that reads none of them continues nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .job import Job
from .links import writes


def note_reads(job: Job) -> None:
    """Write down what this process opens of ``job.saved``, and files like them below its folder, each once."""
    names = frozenset(job.saved)
    folders = tuple(name + os.sep for name in job.saved)
    endings = frozenset(ending for name in job.saved if (ending := Path(name).suffix))
    seen: set[str] = set()

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or len(arguments) != 3 or writes(arguments[1], arguments[2]):
            return
        if not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - called at every open
        alike = name.startswith(job.work + os.sep) and os.path.splitext(name)[1] in endings  # noqa: PTH122
        if name not in seen and (alike or name in names or name.startswith(folders)):
            seen.add(name)
            with (Path(job.trace) / f"reads-{os.getpid()}.txt").open("a", encoding="utf-8", errors="replace") as file:
                file.write(name + "\n")

    sys.addaudithook(watch)
