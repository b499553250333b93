"""The unit tests of what has changed, the nearest ones first, for as long as there is time.

    python -m tests.fast [--base COMMIT] [--seconds N] [OPTIONS OF PYTEST]

What has changed is what differs from ``--base``: by default from where the branch left ``main``, or from the commit
before where nothing does. A test is the nearer, the fewer imports lead from it to a changed module. Tests that are left
when the time is over are counted; ``bash tests/run.sh unit`` runs them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).parents[1]
ROOTS = {"dsmigrate": ROOT / "server", "tests": ROOT}
APART = ("tests.e2e", "tests.benchmarks", "tests.fast")
"""Tests that take what is no quick loop, and this file."""
LEFT_OUT = "not e2e and not slow and not node and not derivation"
BESIDE: dict[str, tuple[str, ...]] = {
    ".ci": ("tests.cli.test_action",),
    ".github": ("tests.cli.test_workflows",),
    "README.md": ("tests.docs", "tests.cli.test_action"),
    "action.yml": ("tests.cli.test_action",),
    "docs": ("tests.docs", "tests.cli.test_action", "tests.languages"),
    "examples": ("tests.docs", "tests.codemod.test_examples"),
    "pyproject.toml": ("tests.test_lowest",),
    "schemas": ("tests.docs",),
    "schemas/deepspeed": ("tests.knowledge", "tests.facts", "tests.schemas", "tests.explain", "tests.editing.hover"),
    "schemas/locale": ("tests.languages",),
    "schemas/machines.toml": ("tests.recommend",),
    "schemas/models": ("tests.memory",),
    "schemas/output": ("tests.report", "tests.cli", "tests.diff"),
}
"""Tests of files that nothing imports, by the beginnings of their paths."""
_NAME = re.compile(r"\b(?:dsmigrate|tests)(?:\.\w+)*")


def git(*words: str) -> list[str]:
    """Return the lines that git says; none where it fails."""
    ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.splitlines() if ran.returncode == 0 else []


def changed(base: str | None) -> list[str]:
    """Return the paths that differ from a commit, files that git does not know yet among them."""
    new = git("ls-files", "--others", "--exclude-standard")
    left = [*git("merge-base", "HEAD", "main"), *git("merge-base", "HEAD", "origin/main"), "HEAD~1"]
    for commit in [base] if base else left:
        found = sorted({*git("diff", "--name-only", commit), *new})
        if found:
            return found
    return []


def module_of(path: str) -> str | None:
    """Return the name of the module that lies at a path; None for one that is none of ours."""
    words = path.removeprefix("server/").removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(words) if path.endswith(".py") and words[0] in ROOTS else None


def file_of(module: str) -> Path:
    """Return where a module lies."""
    place = ROOTS[module.partition(".")[0]].joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def importers() -> Mapping[str, set[str]]:
    """Return who imports each module, by its name in a string or as one of a package too."""
    for folder in ROOTS.values():
        sys.path.insert(0, str(folder))
    graph = grimp.build_graph(*ROOTS, cache_dir=str(ROOT / ".pytest_cache" / "grimp"))
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        needed = set(graph.find_modules_directly_imported_by(module))
        text = file_of(module).read_text(encoding="utf-8")
        named = {name for name in _NAME.findall(text) if name in graph.modules}
        if re.search(r'"-m", "dsmigrate"', text):
            named |= {"dsmigrate.__main__"}
        if "import_module(" in text:  # it looks for what a package holds
            named |= {inner for name in named | needed if name.count(".") for inner in graph.find_descendants(name)}
        for name in needed | named - {module}:
            found[name].add(module)
    return found


def distances(start: Iterable[str], importers: Mapping[str, set[str]]) -> dict[str, int]:
    """Return over how many imports each module depends on one of ``start``."""
    found = dict.fromkeys(start, 0)
    queue = list(found)
    for module in queue:
        for importer in importers.get(module, ()):
            if importer not in found:
                found[importer] = found[module] + 1
                queue.append(importer)
    return found


def affected(paths: Iterable[str]) -> list[Path]:
    """Return the files of the unit tests that changes of ``paths`` concern, the nearest first."""
    start = {module for path in paths if (module := module_of(path))}
    found = distances(start, importers())
    files: dict[Path, int] = {}
    for path in paths:
        fitting = sorted((begin for begin in BESIDE if path.startswith(begin)), key=len, reverse=True)
        for distance, begin in enumerate(fitting, 1):
            for file in (file for name in BESIDE[begin] for file in _tests_in(name)):
                files[file] = min(distance, files.get(file, distance))
    for module, distance in found.items():
        if module.rpartition(".")[2].startswith("test_") and not module.startswith(APART):
            files[file_of(module)] = min(distance, files.get(file_of(module), distance))
    return sorted((path for path in files if path.is_file()), key=lambda path: (files[path], path))


def _tests_in(name: str) -> list[Path]:
    place = ROOT.joinpath(*name.split("."))
    return sorted(place.rglob("test_*.py")) if place.is_dir() else [place.with_suffix(".py")]


class Hurried:
    """A plugin that passes over what is left when the time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = 0.0
        self.left = 0

    def pytest_collection_finish(self) -> None:
        """Let the time begin."""
        self._end = time.monotonic() + self._seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Say that a test is done with, once it is late."""
        if time.monotonic() < self._end:
            return None
        self.left += 1
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the count from a worker of pytest-xdist to the process that prints."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left"] = self.left

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002 - pytest-xdist's signature
        """Take over the count of a worker that has ended."""
        self.left += getattr(node, "workeroutput", {}).get("left", 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many are left."""
        if self.left:
            terminalreporter.write_line(f"{self.left} tests farther from the change are left: bash tests/run.sh unit")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the time; workers of pytest-xdist get it with the other options."""
    parser.addoption("--seconds", type=float, help="after which no test begins")


def pytest_configure(config: pytest.Config) -> None:
    """Hurry where there is an end."""
    seconds = config.getoption("seconds")
    if seconds is not None:
        config.pluginmanager.register(Hurried(seconds))


def main() -> int:
    """Run the tests; 0 where none fails, be there none."""
    parser = argparse.ArgumentParser(prog="python -m tests.fast", description=__doc__)
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--seconds", type=float, default=30.0)
    asked, more = parser.parse_known_args()
    paths = changed(asked.base)
    files = affected(paths)
    print(f"{len(paths)} files have changed, which {len(files)} files of tests depend on", flush=True)
    if not files:
        return 0
    words = ["-p", "tests.fast", "--seconds", str(asked.seconds), "-m", LEFT_OUT, "-q", *more]
    code = pytest.main([*words, *(str(file.relative_to(ROOT)) for file in files)])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    sys.exit(main())
