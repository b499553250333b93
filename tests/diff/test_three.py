from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff.job import Source
from dsmigrate.diff.three import Merged, compare_three
from dsmigrate.settings.diff import DiffSettings
from tests.diff.repository import ROOT

Captured = pytest.CaptureFixture[str]
BASE = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}'


def merged(base: str, ours: str, theirs: str) -> Merged:
    names = ("base.json", "ours.json", "theirs.json")
    sources = (Source(name, text.encode(), Path()) for name, text in zip(names, (base, ours, theirs), strict=True))
    return compare_three(*sources, DiffSettings())


def test_two_sides_that_touch_different_keys_go_together() -> None:
    found = merged(BASE, BASE.replace("8", "16"), BASE.replace('"stage": 2', '"stage": 3'))
    assert (found.conflicts, found.agreed, found.together) == ((), (), ())


def test_a_key_that_both_change_otherwise_is_a_conflict_whatever_git_says() -> None:
    (conflict,) = merged(BASE, BASE.replace("8", "16"), BASE.replace("8", "32")).conflicts
    assert (conflict.path, conflict.ours.new, conflict.theirs.new) == ("train_batch_size", 16, 32)


def test_another_spelling_of_the_same_is_no_conflict() -> None:
    found = merged(BASE, BASE.replace("8", "16"), BASE.replace("8", "16.0").replace(", ", ",\n"))
    assert found.conflicts == ()
    assert found.agreed == ("train_batch_size",)


def test_two_changes_that_only_break_the_config_together_are_told() -> None:
    base = '{"train_batch_size": 8}'
    ours = '{"train_batch_size": 8, "fp16": {"enabled": true}}'
    theirs = '{"train_batch_size": 8, "bf16": {"enabled": true}}'
    found = merged(base, ours, theirs)
    assert found.conflicts == ()
    assert any("bf16" in one.message and "fp16" in one.message for one in found.together)


def test_what_a_side_breaks_alone_is_not_told_again() -> None:
    base = '{"train_batch_size": 8}'
    ours = '{"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}}'
    assert merged(base, ours, '{"train_batch_size": 8, "steps_per_print": 5}').together == ()


def test_what_one_side_takes_away_is_away_in_the_merge() -> None:
    base = '{"train_batch_size": 8, "fp16": {"enabled": true}}'
    assert merged(base, base.replace("8", "16"), '{"train_batch_size": 8, "bf16": {"enabled": true}}').together == ()


@pytest.mark.parametrize(
    ("form", "begins"), [("text", "conflict train_batch_size: 8 in the base, 16 in ours, 32"), ("markdown", "## Merge")]
)
def test_the_command_prints_the_review(tmp_path: Path, capsys: Captured, form: str, begins: str) -> None:
    files = [tmp_path / name for name in ("base.json", "ours.json", "theirs.json")]
    for file, size in zip(files, ("8", "16", "32"), strict=True):
        file.write_text(BASE.replace("8", size), encoding="utf-8")
    base, ours, theirs = map(str, files)
    assert run(["diff", "--base", base, ours, theirs, "--format", form]) == 1
    assert capsys.readouterr().out.startswith(begins)
    assert run(["diff", "--base", base, ours, theirs, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "schemas/output/diff-merge.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(document)
    assert document["conflicts"] == [{"path": "train_batch_size", "base": 8, "ours": 16, "theirs": 32}]
    assert run(["diff", "--base", base, ours, ours]) == 0
    assert run(["diff", "--base", base, ours]) == 2
    assert run(["diff", "--base", base, ours, theirs, "--format", "html"]) == 2
