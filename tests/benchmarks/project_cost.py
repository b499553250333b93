"""What following imports costs: a project of many files with one entry script, over the files that take part alone.

    python -m tests.benchmarks.project_cost [--files N] [--example examples/mae_engine/main_pretrain.py]

Copies an example of several files into a folder of its own, once alone and once among ``N`` other modules: models,
data sets and tools that import each other, some of which the entry script imports. Prints the seconds of both and
their ratio; at most 3 is the goal. Best of three runs each.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dsmigrate.codemod.model import Options
from dsmigrate.migration.job import Job, run
from dsmigrate.migration.sets import reconcile

_ROUNDS = 3
_BODY = '''
import math
from dataclasses import dataclass
{imports}

@dataclass
class Settings{number}:
    """Settings of stage {number}."""

    width: int = {number}
    depth: int = 4


class Block{number}:
    def __init__(self, settings):
        self.settings = settings
        self.scale = math.sqrt(settings.width + 1)

    def forward(self, x):
        for index in range(self.settings.depth):
            x = x * self.scale + index
        return x


def build{number}(settings=None):
    return Block{number}(settings or Settings{number}())
'''


def seconds(script: Path, root: Path) -> float:
    """The best time of a migration of one script, in seconds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        (outcome,) = reconcile([run(Job(script, script.parent, Options(), project=root))])
        best = min(best, time.perf_counter() - start)
        if outcome.result.new_source is None:
            raise SystemExit(f"{script} is not converted: {outcome.result}")
    return best


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--example", type=Path, default=Path("examples/mae_engine/main_pretrain.py"))
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        alone, project = Path(folder, "alone"), Path(folder, "project")
        for copy in (alone, project):
            shutil.copytree(args.example.parent, copy)
        (project / "zoo").mkdir()
        (project / "zoo" / "__init__.py").write_text("")
        for number in range(args.files):
            imports = "" if number % 10 == 9 else f"from zoo.part{number + 1} import build{number + 1}"
            text = _BODY.format(number=number, imports=imports) * 4
            (project / "zoo" / f"part{number}.py").write_text(text)
        entry = project / args.example.name
        lines = [f"from zoo.part{number} import build{number}\n" for number in range(0, args.files, 10)]
        entry.write_text(entry.read_text().replace("import torch\n", "import torch\n" + "".join(lines), 1))
        few, many = seconds(alone / args.example.name, alone), seconds(entry, project)
        print(f"the files that take part alone: {few:.2f} s")
        print(f"among {args.files} others:            {many:.2f} s  ({many / few:.2f} times; the goal is at most 3)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
