"""Tests for a file that the path of a checkpoint reaches through helpers, other names and values."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.steps.path_predicates import WIDER_HELPER
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

IMPORTS = "import glob\nfrom pathlib import Path\nfrom os.path import isfile"
SAVES = saving(f"if rank == 0:\n    torch.save({STATE}, args.resume)")


def asking(helpers: str, test: str, before: str = "") -> Migrated:
    resume = before + RESUME.replace("if args.resume", f"if {test}")
    return convert(imports=IMPORTS, helpers=helpers, resume=resume, loop=SAVES)


@pytest.mark.parametrize(
    ("helper", "after"),
    [
        ("def there(path):\n    return os.path.isfile(path)", "return os.path.exists(path)"),
        ("def there(path):\n    return isfile(path)", "return os.path.exists(path)"),
        (
            "def there(path):\n    if not os.path.isfile(path):\n        return False\n    return True",
            "if not os.path.exists(path):",
        ),
        ("there = lambda path: bool(path) and os.path.isfile(path)", "bool(path) and os.path.exists(path)"),
        (
            "def there(path):\n    return bool(path) and Path(path).is_file()",
            "return bool(path) and is_file_or_checkpoint(Path(path))",
        ),
        (
            "def at(path):\n    return isfile(path)\n\n\ndef there(path):\n    return at(path)",
            "return os.path.exists(path)",
        ),
    ],
)
def test_a_helper_that_asks_for_a_file_takes_the_checkpoint(helper: str, after: str) -> None:
    migrated = asking(helper, "there(args.resume)")
    assert after in migrated.code
    migrated.said("MG623", "file(", Kind.CONVERTED)


def test_a_method_that_asks_for_a_file_takes_the_checkpoint() -> None:
    helper = "class Store:\n    def holds(self, path):\n        return os.path.isfile(path)\n\n\nstore = Store()"
    assert "return os.path.exists(path)" in asking(helper, "store.holds(args.resume)").code


def test_a_helper_that_is_also_asked_for_other_files_tells_them_from_folders() -> None:
    helper = "def there(path):\n    return os.path.isfile(path)"
    migrated = asking(helper, "there(args.resume)", 'words = there("words.txt")\n')
    assert "return is_file_or_checkpoint(path)" in migrated.code
    assert migrated.code.count("def is_file_or_checkpoint") == 1


def test_another_name_of_isfile_is_not_asked_for_a_checkpoint() -> None:
    helper = 'there = os.path.isfile\n\n\ndef words():\n    return there("words.txt")'
    migrated = asking(helper, "there(args.resume)")
    assert "if os.path.exists(args.resume):" in migrated.code
    assert helper in migrated.code


def test_a_function_that_filters_paths_lets_the_checkpoint_through() -> None:
    migrated = asking("", "any(filter(os.path.isfile, [args.resume]))")
    assert "if any(filter(os.path.exists, [args.resume])):" in migrated.code


def test_an_option_that_has_to_be_a_file_may_be_a_checkpoint() -> None:
    helper = "def a_file(text):\n    if not os.path.isfile(text):\n        raise ValueError(text)\n    return text"
    migrated = asking(helper, "args.resume", 'parser.add_argument("--resume", type=a_file)\n')
    assert "if not os.path.exists(text):" in migrated.code


def test_a_helper_that_is_asked_for_no_checkpoint_stays() -> None:
    helper = "def there(path):\n    return os.path.isfile(path)"
    assert helper in asking(helper, "args.resume", 'words = there("words.txt")\n').code


@pytest.mark.parametrize(
    "listing",
    [
        "[e.path for e in os.scandir(folder) if e.is_file()]",
        "[e.path for e in filter(lambda e: e.is_file(), os.scandir(folder))]",
    ],
)
def test_the_entry_of_a_folder_has_no_exists(listing: str) -> None:
    helper = f"def newest(folder):\n    found = {listing}\n    return max(found) if found else None"
    resume = RESUME.replace("if args.resume", "found = newest(args.output)\nif found").replace(
        "load(args.resume", "load(found"
    )
    migrated = convert(helpers=helper, resume=resume, loop=SAVES)
    assert "is_file_or_checkpoint(e)" in migrated.code
    assert ".exists()" not in migrated.code


def test_an_empty_path_is_no_folder() -> None:
    assert "if is_file_or_checkpoint(Path(args.resume)):" in asking("", "Path(args.resume).is_file()").code


def test_what_takes_both_takes_nothing_else(tmp_path: Path) -> None:
    names: dict[str, Any] = {"os": os, "glob": __import__("glob")}
    exec(compile(ast.parse(WIDER_HELPER), "helper", "exec"), names)  # noqa: S102
    takes = SimpleNamespace(**names).is_file_or_checkpoint
    (tmp_path / "file.pt").write_text("")
    (tmp_path / "empty").mkdir()
    for stage, name in enumerate(["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_model_states.pt"]):
        (tmp_path / f"[{stage}]").mkdir()
        (tmp_path / f"[{stage}]" / name).write_text("")
    assert [p.name for p in sorted(tmp_path.iterdir()) if takes(p)] == ["[0]", "[1]", "file.pt"]
    assert [takes(e) for e in sorted(os.scandir(tmp_path), key=lambda e: e.name)] == [True, True, False, True]
    assert not takes("")
