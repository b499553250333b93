"""A patch is about as long as a careful person's, keeps helpers out of users' files, and comes with a short report.

``yardstick/`` has five examples converted by hand, as patches of what stands in ``examples/``: with DeepSpeed's own
checkpoint directories, its accumulation and clipping, and no more than that. They are there for their length.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from dsmigrate.codemod.model import FileResult
from dsmigrate.report.text import lines
from dsmigrate.report.view import Entry, Report
from tests.e2e.cases import CASES, Case
from tests.support.migrating import migrate_files

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
YARDSTICKS = sorted((Path(__file__).parent / "yardstick").glob("*.patch"))
SCRIPTS = {case.script: case for case in CASES}
SENTENCE = 120
"""Characters."""

REPORT = 25
"""Lines."""


def added(patch: str) -> list[str]:
    return [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]


def folder(case: Case) -> Path:
    return EXAMPLES / case.example if case.is_folder else EXAMPLES


def script(case: Case) -> str:
    return case.script.split("/", 1)[-1]


def source(case: Case, path: str) -> bytes:
    return (folder(case) / path).read_bytes()


def functions(text: bytes) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


def results(case: Case) -> list[FileResult]:
    """What becomes of an example's files; the module that conversions share is none of them."""
    paths = [path.relative_to(folder(case)).as_posix() for path in folder(case).rglob("*.py")]
    texts = {path: source(case, path) for path in (paths if case.is_folder else [script(case)])}
    return list(migrate_files(texts, script(case)).results.values())


@pytest.mark.parametrize("by_hand", YARDSTICKS, ids=lambda path: path.stem)
def test_a_patch_is_about_as_long_as_one_by_hand(by_hand: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    subprocess.run(["git", "apply", "--unidiff-zero", by_hand], cwd=tmp_path / "examples", check=True)
    case = next(case for case in CASES if case.example == by_hand.stem)
    ours = sum(len(added(result.diff)) for result in results(case))
    assert ours <= 1.5 * len(added(by_hand.read_text()))
    assert ours <= 40


@pytest.mark.parametrize("case", SCRIPTS.values(), ids=SCRIPTS)
def test_no_function_is_born_in_a_file_of_the_user_and_the_report_is_short(case: Case) -> None:
    found = results(case)
    for result in found:
        assert functions(result.new_source or b"") <= functions(source(case, result.path))
        for change in result.changes:
            assert len(change.message) <= SENTENCE, change
    entry, *modules = sorted(found, key=lambda result: result.path != script(case))
    report = Report((Entry(entry), *(Entry(module, of=entry.path) for module in modules)))
    assert len(list(lines(report))) <= REPORT
