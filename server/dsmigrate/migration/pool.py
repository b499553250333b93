"""Runs jobs on several processes and survives the death of one.

Each process has a pipe of its own and one job at a time, so that a process that dies (of memory, of a parser's stack)
takes only its job with it. ``concurrent.futures`` loses every waiting job then, and may wait for ever (Python 3.12.1).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from dsmigrate.languages import say, spoken, use
from dsmigrate.migration.ideas import INTERNAL
from dsmigrate.migration.job import Job, Outcome, failure, files_of_projects, run

WORTH_A_POOL = 4
"""Below this many files, starting processes costs more than it saves."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Any  # a Connection, generic in some versions of the type stubs only
    job: int


def cores() -> int:
    """Return how many CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(jobs: Sequence[Job], processes: int, advance: Callable[[Outcome], None]) -> list[Outcome]:
    """Run every job and return the outcomes in the order of the jobs; ``advance`` hears of each as it finishes.

    The outcome of a job whose process died says so.
    """
    outcomes: dict[int, Outcome] = {}
    with contextlib.closing(_outcomes(jobs, processes)) as finished:
        for index, outcome in finished:
            outcomes[index] = outcome
            advance(outcome)
    return [outcomes[index] for index in range(len(jobs))]


def _outcomes(jobs: Sequence[Job], processes: int) -> Generator[tuple[int, Outcome], None, None]:
    if processes < 2 or len(jobs) < WORTH_A_POOL:
        caches: defaultdict[Path | None, Any] = defaultdict(files_of_projects())
        for index, job in enumerate(jobs):
            yield index, run(job, caches[job.project])
        return
    _import_once()
    waiting = sorted(range(len(jobs)), key=lambda index: _size(jobs[index]))
    workers: list[_Worker] = []
    try:
        workers.extend(_start(jobs, waiting.pop()) for _ in range(min(processes, len(jobs))))
        while workers:
            ready = connection.wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                yield worker.job, _received(worker, jobs[worker.job])
                workers.remove(worker)
                if waiting:
                    workers.append(_give(worker, jobs, waiting.pop()))
                else:
                    _end(worker)
    finally:
        for worker in workers:
            worker.process.terminate()
            _end(worker)


def _start(jobs: Sequence[Job], index: int) -> _Worker:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs, spoken()), daemon=True)
    process.start()
    theirs.close()
    ours.send(jobs[index])
    return _Worker(process, ours, index)


def _give(worker: _Worker, jobs: Sequence[Job], index: int) -> _Worker:
    """Hand the next job to the process, or to a new one where it has died."""
    try:
        worker.pipe.send(jobs[index])
    except OSError:
        _end(worker)
        return _start(jobs, index)
    return _Worker(worker.process, worker.pipe, index)


def _received(worker: _Worker, job: Job) -> Outcome:
    try:
        outcome = worker.pipe.recv()
    except (EOFError, OSError):
        worker.pipe.close()
        reason = say("its process ended without a word, as it does when memory or stack run out")
        return Outcome(job, failure(job, INTERNAL, say("dsmigrate failed on this file"), reason))
    assert isinstance(outcome, Outcome)  # noqa: S101 - what the worker sends, see _serve
    return outcome


def _end(worker: _Worker) -> None:
    with contextlib.suppress(OSError):  # it may have gone
        worker.pipe.send(None)
    worker.pipe.close()
    worker.process.join()


def _serve(pipe: Any, language: str) -> None:  # noqa: ANN401 - see _Worker
    """Run the jobs that come through the pipe until None comes, or the parent is gone."""
    use(language)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    sources = [pipe] if parent is None else [pipe, parent.sentinel]
    caches: defaultdict[Path | None, Any] = defaultdict(files_of_projects())
    while pipe in connection.wait(sources):
        job = pipe.recv()
        if job is None:
            return
        pipe.send(run(job, caches[job.project]))


def _import_once() -> None:
    """Import the codemod before the processes fork off, so that they share it."""
    import dsmigrate.codemod.convert  # noqa: F401, PLC0415


def _size(job: Job) -> int:
    try:
        return job.path.stat().st_size
    except (OSError, ValueError):
        return 0
