"""Starts the processes of one run, waits for them, and leaves none behind."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from dsmigrate.verify import processes
from dsmigrate.verify.launching import Launch
from dsmigrate.verify.model import Ending, Outcome

AFTER_FAILURE_SECONDS = 10.0
"""How long the other ranks may go on after one has failed."""
AFTER_END_SECONDS = 20.0
"""How long processes may take to leave once every rank has written its last record."""
_TAIL_LINES = 15
_POLL_SECONDS = 0.05
_DUMP_SECONDS = 0.5
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)

Ended = Callable[[], bool]


def run(launch: Launch, *, folder: Path, logs: Path, timeout: float, has_ended: Ended) -> Outcome:
    """Run a launch in ``folder`` and return what became of it; what it prints goes to files in ``logs``.

    ``has_ended`` says whether every rank has written its last record: how its process leaves then is no matter (PyTorch
    over gloo now and then aborts at the exit of the interpreter).
    """
    logs.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    running: list[subprocess.Popen[bytes]] = []
    known: dict[int, str] = {}
    stacks: tuple[str, ...] = ()
    files = [logs / f"process{index}.txt" for index in range(len(launch.starts))]
    try:
        with ExitStack() as stack:
            for one, file in zip(launch.starts, files, strict=True):
                output = stack.enter_context(file.open("wb"))
                running.append(
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
        ending = _wait(running, known, start + timeout, has_ended)
        if ending is Ending.TIMED_OUT:
            stacks = tuple(_stacks(running, files, folder))
    finally:
        codes = tuple(process.poll() for process in running)
        processes.end(running, known)
    tails = tuple("\n".join(_tail(file)) for file in files)
    return Outcome(ending, launch.shown, codes, tails, stacks, time.monotonic() - start)


def _wait(
    running: Sequence[subprocess.Popen[bytes]], known: dict[int, str], deadline: float, has_ended: Ended
) -> Ending:
    failed: float | None = None
    ended: float | None = None
    looked = 0.0
    while True:
        now = time.monotonic()
        codes = [process.poll() for process in running]
        if now - looked > 1.0:
            looked = now
            found = processes.tree(one.pid for one in running)
            known.update((pid, processes.born(pid)) for pid in found if pid not in known)
        if ended is None and has_ended():
            ended = now
        if None not in codes:
            return Ending.CRASHED if any(codes) and not has_ended() else Ending.FINISHED
        if ended is not None and now - ended > AFTER_END_SECONDS:
            return Ending.FINISHED
        if failed is None and ended is None and any(codes):
            failed = now
        if failed is not None and now - failed > AFTER_FAILURE_SECONDS:
            return Ending.CRASHED
        if now > deadline:
            return Ending.TIMED_OUT
        time.sleep(_POLL_SECONDS)


def _stacks(running: Sequence[subprocess.Popen[bytes]], files: Sequence[Path], folder: Path) -> Iterator[str]:
    """Ask every process where it stands; the harness has made Python answer to this signal."""
    before = [file.stat().st_size for file in files]
    processes.send(processes.tree(process.pid for process in running), signal.SIGUSR1)
    time.sleep(_DUMP_SECONDS)
    for file, size in zip(files, before, strict=True):
        text = file.read_bytes()[size:].decode("utf-8", "replace")
        for thread in re.split(r"^(?=Thread|Current thread)", text, flags=re.MULTILINE):
            own = [match for match in _FRAME.finditer(thread) if match["file"].startswith(str(folder))]
            if own:
                inner = next(iter(_FRAME.finditer(thread)))
                place = f"{inner['function']}, {Path(inner['file']).name}"
                yield f"{own[0]['file']}:{own[0]['line']} in {own[0]['function']} (inside of {place})"


def _tail(file: Path) -> list[str]:
    """Return the last lines that a process has printed, the dumps of its threads left out."""
    text = file.read_bytes()[-64_000:].decode("utf-8", "replace")
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    dump = next(
        (index for index, line in enumerate(lines) if line.startswith(("Current thread 0x", "Thread 0x"))), None
    )
    return lines[:dump][-_TAIL_LINES:]
