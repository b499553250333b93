"""Trees of processes: who descends from whom, and how to end all of them.

Run as a program it watches over a run: see ``Watcher``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

INTERRUPT_SECONDS = 1.5
GRACE_SECONDS = 3.0


def parents() -> dict[int, int]:
    """Return the parent of every process that can be seen."""
    found: dict[int, int] = {}
    proc = Path("/proc")
    if (proc / "self" / "stat").exists():
        for entry in os.scandir(proc):
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    text = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
                    found[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
        return found
    listing = shutil.which("ps")
    if listing:
        said = subprocess.run(  # noqa: S603 - ps
            [listing, "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False
        )
        for line in said.stdout.splitlines():
            with contextlib.suppress(ValueError):
                child, parent = map(int, line.split())
                found[child] = parent
    return found


def tree(roots: Iterable[int]) -> list[int]:
    """Return the given processes and all that descend from them, the given ones first."""
    children: dict[int, list[int]] = {}
    for child, parent in parents().items():
        children.setdefault(parent, []).append(child)
    found = list(roots)
    for pid in found:
        found.extend(one for one in children.get(pid, ()) if one not in found)
    return found


def born(pid: int) -> str:
    """Return when a process was started, so that another with its number is told apart; "" where that is not known."""
    with contextlib.suppress(OSError, IndexError):
        text = Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[19]
    return ""


def stored(pid: int | None) -> int:
    """Return how many MiB a process has read from disks and written to them; 0 where that is not known."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc", str(pid), "io").read_text(encoding="utf-8").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("read_bytes", "write_bytes"))) >> 20
    return 0


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal; processes that are gone are no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end(running: list[subprocess.Popen[bytes]], known: Mapping[int, str]) -> None:
    """End the processes and everything that they have started, in other sessions too.

    They are interrupted first, as by Ctrl-C: a Python that is compiling an operator of DeepSpeed then gives its lock
    back, for which every later run would wait for ever. ``known`` are descendants seen before, with their birth:
    children of a process that is gone already belong to nobody, and numbers of processes are used again.
    """
    left = [pid for pid, birth in known.items() if birth and born(pid) == birth]
    pids = list(dict.fromkeys([*tree(process.pid for process in running if process.poll() is None), *left]))
    alive = [pid for pid in pids if is_alive(pid)]
    for number, seconds in ((signal.SIGINT, INTERRUPT_SECONDS), (signal.SIGTERM, GRACE_SECONDS)):
        send([pid for pid in alive if is_alive(pid)], number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(process.poll() is None for process in running):
            time.sleep(0.02)
    send([pid for pid in alive if is_alive(pid)], signal.SIGKILL)
    for process in running:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # each was started as the leader of its group
        process.wait()


def is_alive(pid: int) -> bool:
    """Return whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Watcher:
    """Ends processes where this one is gone before it could: killed, it leaves nobody behind that trains on.

    A small process of its own session reads the numbers of those to be ended, and waits for the end of its input.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def know(self, known: Mapping[int, str]) -> None:
        """Say which processes there are, with their birth."""
        stream = self._process.stdin
        if stream is not None and known:
            with contextlib.suppress(OSError):
                stream.write("".join(f"{pid} {birth}\n" for pid, birth in known.items()).encode())
                stream.flush()

    def dismiss(self) -> None:
        """Let it go: everything has been ended here."""
        self._process.kill()
        self._process.communicate()


def _watch() -> None:
    known = dict(line.rstrip("\n").split(" ", 1) for line in sys.stdin if " " in line)
    roots = [int(pid) for pid, birth in known.items() if birth and born(int(pid)) == birth]
    send(tree(roots), signal.SIGKILL)


if __name__ == "__main__":
    _watch()
