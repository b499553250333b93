"""Fuzz a target, or all of them.

    python -m tests.fuzz [TARGET …] [--minutes N | --cases N] [--seed N]

A case is told by its seed: ``--seed S --cases 1`` runs it again. What fails is printed with its traceback, and
becomes a test of its own beside the code that is mended.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.failing import FailedError
from tests.fuzz.targets import SEEN, TARGETS, emptied


def _target(name: str) -> str:
    if name not in TARGETS:
        raise argparse.ArgumentTypeError(f"there is no {name}: {', '.join(TARGETS)}")
    return name


def main() -> int:
    """Run cases until their number or the time is up; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", type=_target, help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = 0
    for name in asked.targets or TARGETS:
        end = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes / len(asked.targets or TARGETS)
        count = 0
        with tempfile.TemporaryDirectory() as place:
            while time.monotonic() < end if end is not None else count < asked.cases:
                seed = asked.seed + count
                count += 1
                with emptied(Path(place)) as folder:
                    try:
                        TARGETS[name](random.Random(seed), folder)  # noqa: S311 - cases, not secrets
                    except (FailedError, ValueError) as error:
                        failed += 1
                        print(f"{name} --seed {seed} --cases 1: {type(error).__name__} {error}", flush=True)
        ends = ", ".join(f"{command} {code}: {times}" for (command, code), times in sorted(SEEN.items()))
        print(f"{name}: {count} cases ({ends})", flush=True)
        SEEN.clear()
    print(f"{failed} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
