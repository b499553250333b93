"""Runs jobs on several processes and survives the death of one."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from dsmigrate.migration.ideas import INTERNAL
from dsmigrate.migration.job import Job, Outcome, failure, run

WORTH_A_POOL = 4
"""Below this many files, starting processes costs more than it saves."""


def cores() -> int:
    """Return how many CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(jobs: Sequence[Job], processes: int, advance: Callable[[Outcome], None]) -> list[Outcome]:
    """Run every job and return the outcomes in the order of the jobs; ``advance`` hears of each as it finishes."""
    if processes < 2 or len(jobs) < WORTH_A_POOL:
        return [_told(run(job), advance) for job in jobs]
    _import_once()
    outcomes: dict[int, Outcome] = {}
    with contextlib.closing(_run_in_pool(jobs, min(processes, len(jobs)))) as finished:
        for index, outcome in finished:
            outcomes[index] = _told(outcome, advance)
    for index, job in enumerate(jobs):
        if index not in outcomes:  # a worker died; whose fault it was shows when each left-over file is alone
            outcomes[index] = _told(_run_alone(job), advance)
    return [outcomes[index] for index in range(len(jobs))]


def _run_in_pool(jobs: Sequence[Job], processes: int) -> Generator[tuple[int, Outcome], None, None]:
    largest_first = sorted(range(len(jobs)), key=lambda index: -_size(jobs[index]))
    pool = ProcessPoolExecutor(processes, initializer=_leave_interrupts_to_parent)
    try:
        waiting: dict[Future[Outcome], int] = {pool.submit(run, jobs[index]): index for index in largest_first}
        for done in as_completed(waiting):
            try:
                yield waiting[done], done.result()
            except BrokenProcessPool:
                return
    finally:
        pool.shutdown(cancel_futures=True)


def _run_alone(job: Job) -> Outcome:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(run, job).result()
        except BrokenProcessPool:
            reason = "its process ended without a word, as it does when memory or stack run out"
            return Outcome(job, failure(job, INTERNAL, "dsmigrate failed on this file", reason))


def _import_once() -> None:
    """Import the codemod before the processes fork off, so that they share it."""
    import dsmigrate.codemod.migrate  # noqa: F401, PLC0415


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _told(outcome: Outcome, advance: Callable[[Outcome], None]) -> Outcome:
    advance(outcome)
    return outcome


def _size(job: Job) -> int:
    try:
        return job.path.stat().st_size
    except (OSError, ValueError):
        return 0
