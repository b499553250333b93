"""What ``dsmigrate --version`` and ``--help`` cost, as multiples of bare ``python -c pass``.

    python -m tests.benchmarks.startup [--repeat N]

All are measured in turn, so that a busy machine slows them alike; medians. The installed ``dsmigrate`` beside the
running Python is measured; without one, ``python -m dsmigrate``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SERVER = Path(__file__).parents[2] / "server"


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the time from start to end of one run."""
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=40)
    args = parser.parse_args()
    installed = Path(sys.executable).with_name("dsmigrate")
    ours = [str(installed)] if installed.exists() else [sys.executable, "-m", "dsmigrate"]
    environment = dict(os.environ)
    if not installed.exists():
        environment["PYTHONPATH"] = str(SERVER)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "dsmigrate --version": [*ours, "--version"],
        "dsmigrate --help": [*ours, "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(args.repeat):
        for name, command in commands.items():
            times[name].append(seconds(command, environment))
    bare = statistics.median(times["python -c pass"])
    print(f"measured: {' '.join(ours)}")
    for name, measured in times.items():
        middle = statistics.median(measured)
        print(f"{name:20} {1000 * middle:7.1f} ms  {middle / bare:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
