"""What the diff says about real pairs of configs: how many changed keys are explained, by whom, with which effects.

    python -m tests.benchmarks.diff_effects [FOLDER] [--generic] [--slowest N]

``FOLDER``, else ``DSMIGRATE_PAIRS``, holds pairs as ``0001_a.json`` and ``0001_b.json``. Printed are pairs and their
changed leaves, by effect and by severity; how many leaves an explanation of their own family tells, how many are told
to do nothing, and how many are told by the facts of their key alone (DF999; ``--generic`` lists those); and what the
comparison costs per pair, in process. The command exits with 1 when a leaf is told by nobody or only restated, when a
pair of equal data is not "No semantic change", and when the comparison raises.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from dsmigrate.diff import Result
from dsmigrate.diff.model import Severity
from dsmigrate.document import Document
from tests.diff.pairs import NO_PAIRS, Pair, pairs

GENERIC = "DF999"


def restated(result: Result, path: str) -> bool:
    """Return whether all that is said of a change are its values: the facts know no word about the key."""
    said = [one for one in result.explained if path in one.paths]
    return bool(said) and all(one.code == GENERIC and one.message.startswith("`") for one in said)


def data(document: Document) -> str:
    """Return what a config says, whatever its layout."""
    return json.dumps(None if document.root is None else document.root.value(), sort_keys=True)


class Counts:
    """What is counted over all pairs."""

    def __init__(self) -> None:
        self.leaves: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self.severities: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.same = self.layout = 0
        self.left: list[str] = []
        self.generic: list[str] = []
        self.costs: dict[str, float] = {}

    def add(self, pair: Pair) -> None:
        """Compare a pair and count what is said."""
        start = time.perf_counter()
        try:
            result = pair.compared()
        except Exception as error:  # noqa: BLE001 - every crash is to be listed
            self.left.append(f"{pair.name}: {type(error).__name__}: {error}")
            return
        self.costs[pair.name] = time.perf_counter() - start
        self.same += result.is_same
        if data(pair.old) == data(pair.new):
            self.layout += 1
            if result.verdict != "No semantic change":
                self.left.append(f"{pair.name}: equal data, and the verdict is {result.verdict}")
        for one in result.explained:
            self.severities[one.severity.value] += 1
            self.codes[one.code] += 1
        for path in result.changes:
            self.leaf(pair.name, result, path)

    def leaf(self, name: str, result: Result, path: str) -> None:
        """Count a changed leaf by who tells it, and by what it touches."""
        said = [one for one in result.explained if path in one.paths]
        self.effects.update({effect.value for one in said for effect in one.effects})
        if not said or restated(result, path):
            self.left.append(f"{name}: {path} is {'only restated' if said else 'told by nobody'}")
        elif all(one.severity is Severity.NONE for one in said):
            self.leaves["told to do nothing, with the reason"] += 1
        elif any(one.code != GENERIC for one in said):
            self.leaves["told by an explanation of its own"] += 1
        else:
            self.leaves["told by the facts of the key"] += 1
            self.generic += [f"{name}: {path}: {one.message}" for one in said]


def table(title: str, counted: Counter[str]) -> None:
    """Print counts, largest first."""
    print(f"{title}: {', '.join(f'{name} {count}' for name, count in counted.most_common())}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get("DSMIGRATE_PAIRS"))
    parser.add_argument("--generic", action="store_true", help="list what the facts of a key tell alone")
    parser.add_argument("--slowest", type=int, default=0, help="list so many pairs by their cost")
    args = parser.parse_args(arguments)
    if args.folder is None:
        parser.error(NO_PAIRS)
    os.environ["DSMIGRATE_PAIRS"] = str(args.folder)
    found = pairs()
    if not found:
        parser.error(f"{args.folder} holds no pairs")
    counts = Counts()
    found[0].compared()  # imports
    for pair in found:
        counts.add(pair)
    print(f"{len(found)} pairs: {counts.same} without semantic change, {counts.layout} of them with equal data")
    table(f"{sum(counts.leaves.values())} changed leaves", counts.leaves)
    table("changed leaves by effect", counts.effects)
    table("explanations by severity", counts.severities)
    table("explanations by code", counts.codes)
    costs = sorted(counts.costs.values())
    print(
        f"cost of a pair in process: median {1000 * statistics.median(costs):.1f} ms, worst {1000 * costs[-1]:.1f} ms"
    )
    for name, cost in sorted(counts.costs.items(), key=lambda item: -item[1])[: args.slowest]:
        print(f"  {name}: {1000 * cost:.1f} ms")
    for line in counts.generic if args.generic else ():
        print(f"  {line}")
    print(f"left: {len(counts.left)}")
    for line in counts.left:
        print(f"  {line}")
    return 1 if counts.left else 0


if __name__ == "__main__":
    sys.exit(main())
