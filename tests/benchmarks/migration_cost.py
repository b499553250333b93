"""What a migration costs, as a multiple of LibCST's own parse and print of the same script.

    python -m tests.benchmarks.migration_cost FOLDER [--repeat N]

Both are measured in turn on each script of the folder; the median over the scripts that are converted is the figure.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import libcst

from dsmigrate.codemod.model import Options
from tests.support.migrating import migrate_source


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the least time of ``repeat`` runs, the one that was disturbed least."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ratio_of(source: bytes, repeat: int) -> tuple[float, float] | None:
    """Return the ratio and the seconds of a migration; None for a script that is not converted."""
    if migrate_source(source, path="train.py", options=Options()).new_source is None:
        return None
    text = source.decode()
    bare = seconds(lambda: libcst.parse_module(text).code, repeat)
    ours = seconds(lambda: migrate_source(source, path="train.py", options=Options()), repeat)
    return ours / bare, ours


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for script in sorted(args.folder.rglob("*.py")):
        measured = ratio_of(script.read_bytes(), args.repeat)
        if measured is not None:
            found.append(measured)
            print(f"{measured[0]:6.2f} x  {measured[1]:7.3f} s  {script.relative_to(args.folder)}")
    if not found:
        parser.error(f"no script under {args.folder} is converted")
    ratios = [ratio for ratio, _ in found]
    print(f"scripts converted                {len(found)}")
    print(f"median time of a migration       {statistics.median(time for _, time in found):.3f} s")
    print(f"worst / LibCST parse and print   {max(ratios):.2f}")
    print(f"median / LibCST parse and print  {statistics.median(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
