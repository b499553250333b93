"""How much work a run does: what several scripts share is read and converted no more often than it has to be."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.cli.app import run
from dsmigrate.codemod import convert
from dsmigrate.codemod.program.edits import Comment, Insert, brings
from dsmigrate.codemod.program.module import Module, parsed

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_scripts_with_different_configs_that_share_a_module_are_converted_twice_and_not_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES / "two_entries", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    Path("finetune.py").write_text(Path("finetune.py").read_text().replace("batch_size=", "batch_size=3 * "))
    planned: Counter[str] = Counter()
    original = convert._planned

    def counted(read: Any, entry: convert.Entry, cache: Any) -> convert.Planned:
        planned[entry.path] += 1
        return original(read, entry, cache)

    monkeypatch.setattr(convert, "_planned", counted)
    assert run([".", "--jobs", "1", "--write", "--quiet"]) in {0, 1}
    assert sorted(path.name for path in Path().glob("*.json")) == ["ds_config.finetune.json", "ds_config.pretrain.json"]
    assert planned["pretrain.py"] == planned["finetune.py"] == 2


def test_a_comment_brings_no_code() -> None:
    read = parsed(b"x = 1\n")
    module = Module("train.py", "__main__", read.source, read.tree)
    statement = module.tree.body[0]
    assert brings(Insert(module, statement, (("ds_compat.", statement.value, "()"),)), "ds_compat.")  # type: ignore[attr-defined]
    assert brings(Comment(module, statement, "then", guard=""), "then") is False
