"""Starts the processes of one run, waits for them, and leaves none behind."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import time as wall_time

from dsmigrate.verify import processes
from dsmigrate.verify.launching import Launch
from dsmigrate.verify.model import Ending, Outcome

AFTER_FAILURE_SECONDS = 10.0
"""How long the other ranks may go on after one has failed."""
AFTER_END_SECONDS = 20.0
"""How long processes may take to leave once every rank has written its last record."""
STILL_SECONDS = 30.0
STILL_TIMES = 10
"""A run stands still after so many seconds without a record, and so many times the longest wait for one before."""
BETWEEN_LOOKS_SECONDS = 5.0
_LOOKS = 3
_TAIL_LINES = 15
_POLL_SECONDS = 0.05
_DUMP_SECONDS = 0.5
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_THREAD = re.compile(r"^(?=Thread|Current thread)", re.MULTILINE)

Ended = Callable[[], bool]
Progress = Callable[[], tuple[int, int]]
"""Gives the optimizer steps that have been taken, and a number that grows with every record."""


@dataclass(slots=True)
class _Running:
    """What is known of a run while it lasts; ``known`` are all processes that were seen, with their birth."""

    processes: list[subprocess.Popen[bytes]]
    logs: Path
    folder: Path
    known: dict[int, str] = field(default_factory=dict)
    first: tuple[int, float] | None = None
    stacks: tuple[str, ...] = ()
    still: float = 0.0


def run(
    launch: Launch,
    *,
    folder: Path,
    logs: Path,
    timeout: float,
    has_ended: Ended,
    progress: Progress = lambda: (0, 0),
    say: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run a launch in ``folder`` and return what became of it; what it prints goes to files in ``logs``.

    ``has_ended`` says whether every rank has written its last record: how its process leaves then is no matter (PyTorch
    over gloo now and then aborts at the exit of the interpreter). ``say`` hears how many steps have been taken.
    """
    logs.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    found = _Running([], logs, folder)
    files = [logs / f"process{index}.txt" for index in range(len(launch.starts))]
    watcher = processes.Watcher()
    try:
        with ExitStack() as stack:
            for one, file in zip(launch.starts, files, strict=True):
                output = stack.enter_context(file.open("wb"))
                found.processes.append(
                    subprocess.Popen(  # noqa: S603 - what the person asked to run
                        one.command,
                        cwd=folder,
                        env=dict(one.environment),
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
                _look_around(found, watcher)
        ending = _wait(found, watcher, start + timeout, has_ended, progress, say)
        if ending is Ending.TIMED_OUT:
            found.stacks = tuple(_stacks(found, _dumps(found)))
    finally:
        codes = tuple(process.poll() for process in found.processes)
        processes.end(found.processes, found.known)
        watcher.dismiss()
    tails = tuple("\n".join(_tail(file)) for file in files)
    free = min(shutil.disk_usage(place).free for place in (logs, folder))
    seconds = time.monotonic() - start
    return Outcome(ending, launch.shown, codes, tails, found.stacks, seconds, found.first, free, found.still)


def _look_around(found: _Running, watcher: processes.Watcher) -> None:
    """Learn of the processes that have been started in the meantime."""
    new = {
        pid: processes.born(pid) for pid in processes.tree(one.pid for one in found.processes) if pid not in found.known
    }
    found.known |= new
    watcher.know(new)


def _wait(  # noqa: PLR0917 - one loop
    found: _Running,
    watcher: processes.Watcher,
    deadline: float,
    has_ended: Ended,
    progress: Progress,
    say: Callable[[int], None],
) -> Ending:
    failed: float | None = None
    ended: float | None = None
    looked = 0.0
    stand = _Still()
    while True:
        now = time.monotonic()
        codes = [process.poll() for process in found.processes]
        if now - looked > 1.0:
            looked = now
            _look_around(found, watcher)
            steps, records = progress()
            say(steps)
            stand.see(now, steps, records)
        if ended is None and has_ended():
            ended = now
        failing = [index for index, code in enumerate(codes) if code]
        if found.first is None and failing:
            found.first = (failing[0], wall_time())
        if None not in codes:
            return Ending.CRASHED if any(codes) and not has_ended() else Ending.FINISHED
        if ended is not None and now - ended > AFTER_END_SECONDS:
            return Ending.FINISHED
        if failed is None and ended is None and failing:
            failed = now
        if failed is not None and now - failed > AFTER_FAILURE_SECONDS:
            return Ending.CRASHED
        if failed is None and ended is None and stand.is_overdue(now):
            dumps = _dumps(found)
            if stand.is_still(now, [*dumps.values(), str([processes.stored(_living(file)) for file in dumps])]):
                found.stacks, found.still = tuple(_stacks(found, dumps)), now - stand.since
                return Ending.HUNG
        if now > deadline:
            return Ending.TIMED_OUT
        time.sleep(_POLL_SECONDS)


@dataclass(slots=True)
class _Still:
    """Whether a run that has begun to take steps takes no more of them.

    A long evaluation or a checkpoint writes no record either: its stacks move, or what it has written to the disk
    grows. Those of a hang are the same whenever they are looked at.
    """

    since: float = 0.0
    longest: float = 0.0
    steps: int = 0
    records: int = -1
    looked: float = 0.0
    looks: list[list[str]] = field(default_factory=list)

    def see(self, now: float, steps: int, records: int) -> None:
        """Learn how far the run is."""
        if records != self.records:
            if self.steps:
                self.longest = max(self.longest, now - self.since)
            self.since, self.records, self.steps = now, records, steps
            self.looks.clear()

    def is_overdue(self, now: float) -> bool:
        """Return whether it is time to look where all processes stand."""
        waited = now - self.since
        late = self.steps > 0 and waited > max(STILL_SECONDS, STILL_TIMES * self.longest)
        return late and now - self.looked > BETWEEN_LOOKS_SECONDS

    def is_still(self, now: float, stacks: list[str]) -> bool:
        """Take a look; return whether the last ones were all the same."""
        self.looked = now
        self.looks = [*self.looks[-_LOOKS + 1 :], stacks]
        return len(self.looks) == _LOOKS and any(stacks[:-1]) and all(look == stacks for look in self.looks)


def _dumps(found: _Running) -> dict[Path, str]:
    """Ask every process where it stands; the harness has made Python answer to this signal, into a file."""
    before = {file: file.stat().st_size for file in found.logs.glob("stack-*.txt")}
    processes.send((pid for file in before if (pid := _living(file))), signal.SIGUSR1)
    time.sleep(_DUMP_SECONDS)
    return {file: file.read_bytes()[size:].decode("utf-8", "replace") for file, size in before.items()}


def _living(file: Path) -> int | None:
    """Return the process that answers into a file, if it is still there."""
    pid, birth = int(file.stem.partition("-")[2]), file.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    return pid if processes.is_alive(pid) and processes.born(pid) == birth else None


def _stacks(found: _Running, dumps: dict[Path, str]) -> Iterator[str]:
    """Yield where each rank stands, or that it has ended."""
    told: set[int] = set()
    for rank, text in sorted(((_rank(file), text) for file, text in dumps.items()), key=lambda one: str(one[0])):
        lines = [line for thread in _THREAD.split(text) if (line := _place(thread, found.folder))]
        other = next(_FRAME.finditer(text), None)
        if rank is not None and not lines and other is not None:
            lines = [f"in {other['function']}, {Path(other['file']).name}"]
        if lines and rank is not None:
            told.add(rank)
        yield from (line if rank is None else f"rank {rank}: {line}" for line in lines)
    if len(found.processes) > 1:
        for rank, process in enumerate(found.processes):
            if rank not in told and process.poll() is not None:
                yield f"rank {rank}: has ended with exit code {process.poll()}"


def _rank(file: Path) -> int | None:
    known = file.with_suffix(".rank")
    return int(known.read_text(encoding="utf-8")) if known.exists() else None


def _place(thread: str, folder: Path) -> str:
    """Return the innermost line of the script in a thread; "" where there is none of it."""
    own = [match for match in _FRAME.finditer(thread) if match["file"].startswith(str(folder))]
    if not own:
        return ""
    inner = next(iter(_FRAME.finditer(thread)))
    place = f"{inner['function']}, {Path(inner['file']).name}"
    return f"{own[0]['file']}:{own[0]['line']} in {own[0]['function']} (inside of {place})"


def _tail(file: Path) -> list[str]:
    """Return the last lines that a process has printed."""
    text = file.read_bytes()[-64_000:].decode("utf-8", "replace")
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()][-_TAIL_LINES:]
