"""The migration of one file from its path, with every failure turned into a result."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError, decode
from dsmigrate.migration.ideas import INTERNAL, UNREADABLE


@dataclass(frozen=True, slots=True)
class Job:
    """One file to migrate. ``source`` holds its bytes where they were read already (standard input)."""

    path: Path
    root: Path
    options: Options
    source: bytes | None = None

    @property
    def name(self) -> str:
        """The path as reports and diffs show it."""
        return self.path.as_posix()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job gave: the codemod's result, the bytes it was made from, and the encoding those are in."""

    job: Job
    result: FileResult
    source: bytes = b""
    encoding: str = "utf-8"


def run(job: Job) -> Outcome:
    """Read and migrate one file. Never raises for bad input: the outcome then has ``Status.ERROR`` and says why."""
    source = b""
    try:
        source = read(job.path) if job.source is None else job.source
        encoding = decode(source).encoding
    except SourceError as error:
        return Outcome(job, failure(job, UNREADABLE, error.message, "the file is left as it is", error.line), source)
    try:
        result = _migrate(source, job)
    except Exception as error:  # noqa: BLE001 - the promise is a message, never a traceback
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"dsmigrate failed on this file: {type(error).__name__}: {str(error)[:200]}"
        reason = f"an error of dsmigrate, at {Path(where.filename).name}:{where.lineno}; the file is left as it is"
        result = failure(job, INTERNAL, message, reason)
    return Outcome(job, result, source, encoding)


def failure(job: Job, code: str, message: str, reason: str, line: int = 1) -> FileResult:
    """Return the result of a file that could not be worked on."""
    change = Change(code, Kind.REFUSED, line, line, message, reason)
    return FileResult(job.name, Status.ERROR, (change,))


def _migrate(source: bytes, job: Job) -> FileResult:
    from dsmigrate.codemod.migrate import migrate_source  # noqa: PLC0415 - LibCST takes 0.2 s to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python thinks of the script's escapes is not what was asked
        return migrate_source(source, path=job.name, options=job.options)
