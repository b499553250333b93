"""How many faults planted in converted examples are found by reading the result back, without running anything.

    python -m tests.benchmarks.planted [--fault TEXT] [--case TEXT]

Each fault of ``tests/e2e/faults.py`` is planted in every example that it can be planted in, at the place where training
would show it; the table says where the read-back of the codemod finds it. Faults of the config alone are planted in the
script that hands it to the engine. Prints the share that is found, by faults and by places; exits with 1 where an
example raises an alarm without a fault.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from dsmigrate.codemod import convert as codemod
from dsmigrate.codemod.analysis.analysis import Analysis
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Options
from dsmigrate.codemod.program.project import Cache
from dsmigrate.codemod.settle import Settled
from dsmigrate.codemod.validate import Difference, differences, result_of
from tests.e2e.cases import CASES, Case
from tests.e2e.faults import FAULTS, Fault
from tests.e2e.planting import NotApplicableError

EXAMPLES = Path(__file__).parents[2] / "examples"


class Converted:
    """A converted example: its texts, and what the read-back found in it and works with."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.entry = case.script.split("/", 1)[-1]
        root = EXAMPLES / case.example if case.is_folder else EXAMPLES
        paths = root.rglob("*.py") if case.is_folder else [EXAMPLES / case.script]
        self.before = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
        self.read_back: list[tuple[Facts, Settled]] = []
        self.alarms: list[Difference] = []
        with mock.patch.object(codemod, "differences", self._noted):
            found = codemod.convert(self.before.get, self.entry, Options())
        self.after = {**self.before, **{p: one.new_source for p, one in found.results.items() if one.new_source}}

    def _noted(self, facts: Facts, after: Analysis, settled: Settled, beside: tuple[Settled, ...]) -> list[Difference]:
        self.read_back.append((facts, settled))
        self.alarms += differences(facts, after, settled, beside)
        return []

    def found(self, fault: Fault) -> bool:
        """Whether the read-back finds a fault; raises NotApplicableError where it cannot be planted."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for path, text in self.after.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(text)
            fault.plant(folder, self.case)
            planted = {path: (folder / path).read_bytes() for path in self.after}
        if planted == self.after:
            raise NotApplicableError
        try:
            result = result_of(self.before.get, self.entry, planted, Cache())
        except SyntaxError:
            return True
        return any(differences(facts, result, settled) for facts, settled in self.read_back)


def places(fault: Fault, examples: list[Converted]) -> Iterator[tuple[str, bool]]:
    """Where a fault was planted among the cases that it names, and whether it was found there."""
    for example in examples:
        if not any(example.case.name.startswith(start) for start in fault.cases):
            continue
        try:
            yield example.case.name, example.found(fault)
        except NotApplicableError:
            continue


def main() -> int:
    """Print the table; 1 where an example raises an alarm by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.planted")
    parser.add_argument("--fault", default="", metavar="TEXT")
    parser.add_argument("--case", default="", metavar="TEXT")
    asked = parser.parse_args()
    scripts = {case.name: case for case in CASES if asked.case in case.name}
    examples = [Converted(case) for case in scripts.values()]
    faults = planted = found = 0
    for fault in FAULTS:
        if asked.fault not in fault.name:
            continue
        seen = dict(places(fault, examples))
        faults += bool(seen) and all(seen.values())
        planted, found = planted + len(seen), found + sum(seen.values())
        missed = ", ".join(name for name, is_found in seen.items() if not is_found)
        print(
            f"{fault.name:42} {sum(seen.values()):3} of {len(seen):3}{'  not in ' + missed if missed else ''}",
            flush=True,
        )
    print(f"{found} of {planted} planted faults found; {faults} of {len(FAULTS)} kinds everywhere")
    alarms = [(example.case.name, str(one)) for example in examples for one in example.alarms]
    for name, alarm in alarms:
        print(f"alarm without a fault: {name}: {alarm}")
    return int(bool(alarms))


if __name__ == "__main__":
    sys.exit(main())
