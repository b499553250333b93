"""Whether a directory uses the cores there are: 200 scripts with one process and with all.

    python -m tests.benchmarks.directory [--files N] [--jobs N]

The scripts are those of examples/, over and over. "Cores busy" is CPU time over wall time of the run with all.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dsmigrate.migration.pool import cores

ROOT = Path(__file__).parents[2]


def measure(folder: Path, jobs: int) -> tuple[float, float]:
    """Migrate the folder with ``jobs`` processes; return wall seconds, and CPU seconds of all processes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    command = [sys.executable, "-m", "dsmigrate", str(folder), "--quiet", "--jobs", str(jobs)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    code = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code == 2:
        raise SystemExit("the migration failed")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=cores())
    args = parser.parse_args()
    examples = sorted(path for path in (ROOT / "examples").glob("*.py"))
    with tempfile.TemporaryDirectory() as folder:
        for index in range(args.files):
            place = Path(folder) / f"{index:04}"
            place.mkdir()
            (place / "train.py").write_bytes(examples[index % len(examples)].read_bytes())
        one, _ = measure(Path(folder), 1)
        wall, cpu = measure(Path(folder), args.jobs)
    print(f"{args.files} files, 1 process      {one:7.2f} s")
    print(f"{args.files} files, {args.jobs} processes    {wall:7.2f} s")
    print(f"speed-up                  {one / wall:7.2f} x")
    print(f"cores busy                {cpu / wall:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
