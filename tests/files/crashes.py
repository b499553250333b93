"""Sets of writes that are killed, edited beside, run twice at once, or find the disk full.

    python -m tests.files.crashes --planted 300 --random 300 --edits 50 --pairs 20

Each case is a process of its own that writes a set of files. Afterwards, and after ``recover``, every file has its old
or its new content, all of them the same one, and nothing else lies there.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from dsmigrate.files import writing
from dsmigrate.files.exchange import exchange
from dsmigrate.files.journal import NAME, all_found, recover
from dsmigrate.files.writing import Write, WriteError, write_all

OLD, NEW = b"old\n" * 2000, b"new\n" * 3000
NAMES = ("a.py", "b.py", "deep/c.py", "deep/er/d.py")
ADDED = "deep/ds_config.json"
STEPS = {"open", "os.rename", "os.link", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.mkdir"}
"""What Python tells its audit hooks before it asks the system; reads are among the first."""


class LostError(AssertionError):
    """Something was lost, mixed or left behind."""


def project(folder: Path) -> list[Write]:
    """Make files of the old content and return the set that gives them a new one."""
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(OLD)
    writes = [Write(folder / name, NEW, OLD, folder) for name in NAMES]
    return [*writes, Write(folder / ADDED, NEW, None, folder)]


def child(work: Callable[[], None]) -> int:
    """Run something in a process of its own and return how that ended, as ``subprocess`` counts."""
    number = os.fork()
    if number == 0:
        code = 3
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def whole(folder: Path) -> bytes:
    """Return the content that all files have; raises LostError where they differ or something else lies there."""
    found = contents(folder)
    if found == dict.fromkeys(sorted(NAMES), OLD):
        return OLD
    if found == dict.fromkeys(sorted((*NAMES, ADDED)), NEW):
        return NEW
    raise LostError({name: (len(data), data[:8]) for name, data in found.items()})


def mended(folder: Path) -> bytes:
    """Recover, and return the content that all files have; nothing may be lost before either."""
    found = contents(folder)
    for name in NAMES:
        if found.get(name) not in {OLD, NEW}:
            raise LostError(f"{name} before recovery")
    for path in all_found(folder):
        recover(path)
    return whole(folder)


def at_step(step: int, act: Callable[[str], None]) -> Callable[[], int]:
    """Let ``act`` happen before a step, counted from 0; what is returned says how many there have been."""
    count = -1

    def one(event: str, _: object) -> None:
        nonlocal count
        if event in {*STEPS, "exchange", "exchanged"}:
            count += 1
            if count == step:
                act(event)

    def exchanged(ours: Path, theirs: Path) -> None:
        one("exchange", ())
        exchange(ours, theirs)
        one("exchanged", ())

    sys.addaudithook(one)
    writing.exchange = exchanged
    return lambda: count


def kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def planted(step: int) -> bool:
    """Kill a run before a step; False where it has fewer steps."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        writes = project(folder)

        def work() -> None:
            at_step(step, kill)
            write_all(writes)

        code = child(work)
        mended(folder)
        return code == -signal.SIGKILL


def killed_at_random(chance: random.Random, longest: float) -> bool:
    """Kill a run after some time, at most ``longest`` seconds; return whether it was still going."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        writes = project(folder)
        number = os.fork()
        if number == 0:
            with contextlib.suppress(BaseException):
                write_all(writes)
            os._exit(0)
        threading.Event().wait(chance.uniform(0, longest))
        os.kill(number, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        mended(folder)
        return code == -signal.SIGKILL


def killed(count: int, chance: random.Random) -> int:
    """Kill so many runs at random, sooner each time that one has ended before; return how many were tried."""
    longest, tried = 0.02, 0
    while count:
        tried += 1
        if killed_at_random(chance, longest):
            count -= 1
        else:
            longest *= 0.9
    return tried


def full(step: int) -> bool:
    """Let the disk be full at a step; False where there are fewer steps."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        writes = project(folder)

        def fail(step: str) -> None:
            if step != "exchanged":  # what is done does not fail
                raise OSError(errno.ENOSPC, "No space left on device")

        def work() -> None:
            steps = at_step(step, fail)
            with contextlib.suppress(WriteError):
                write_all(writes)
            if steps() < step:
                os._exit(4)

        code = child(work)
        if code not in {0, 4}:
            raise LostError(f"exit code {code}")
        mended(folder)
        return code == 0


def edited(chance: random.Random, step: int) -> bool:
    """Let a person save a file before a step of a run, in place or by another file; what is saved stays."""
    edit = b"edited\n"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        writes = project(folder)
        name, in_place = chance.choice(NAMES), chance.random() < 0.5

        def save() -> None:
            file = folder / name
            if in_place:
                file.write_bytes(edit)
            else:
                (folder / "saved").write_bytes(edit)
                (folder / "saved").replace(file)

        def work() -> None:
            at_step(step, lambda _: child(save) and None)
            with contextlib.suppress(WriteError):
                write_all(writes)

        if child(work) != 0:
            raise LostError("the run did not end by itself")
        found = contents(folder)
        if found[name] != edit:
            raise LostError(f"the edit of {name} before step {step}")
        for path in all_found(folder):
            recover(path)
        others = {data for other, data in contents(folder).items() if other != name and not other.endswith(NAME)}
        if others not in ({OLD}, {NEW}, {OLD, NEW}):
            raise LostError("another file")
        return others == {OLD}


def pair(_: random.Random) -> bool:
    """Let two runs write the same files at once: one of them does, or none, and none by half."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        writes = project(folder)
        numbers = []
        for _ in range(2):
            number = os.fork()
            if number == 0:
                code = 0
                try:
                    write_all(writes)
                except WriteError:
                    code = 2
                except BaseException:  # noqa: BLE001 - told by the code
                    code = 3
                os._exit(code)
            numbers.append(number)
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in numbers)
        if codes not in ([0, 2], [2, 2]):
            raise LostError(f"exit codes {codes}")
        if (whole(folder) == NEW) is not (0 in codes):
            raise LostError("what was said is not what was done")
        return 0 in codes


@functools.cache
def steps() -> int:
    """Return how many steps a run has."""
    return next(step for step in range(10_000) if not planted(step))


def main() -> int:
    """Run what is asked for and print what was seen; LostError ends it."""
    parser = argparse.ArgumentParser(prog="python -m tests.files.crashes")
    for name in ("planted", "random", "edits", "pairs", "seed"):
        parser.add_argument(f"--{name}", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)  # noqa: S311 - moments, not secrets
    last = steps()
    print(f"{last} steps, each killed once")
    print(f"{sum(planted(step % last) for step in range(asked.planted))} of {asked.planted} killed at planted steps")
    print(f"{asked.random} of {killed(asked.random, chance)} killed at random")
    print(f"{sum(edited(chance, step % last) for step in range(asked.edits))} of {asked.edits} stopped by an edit")
    print(f"{sum(pair(chance) for _ in range(asked.pairs))} of {asked.pairs} pairs with one that wrote")
    print(f"{sum(full(step) for step in range(last))} of {last} steps with a full disk")
    print("nothing was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
