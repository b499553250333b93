from __future__ import annotations

import json

import pytest

from dsmigrate.cli.app import run
from dsmigrate.launchers.ideas import IDEAS as LAUNCHERS
from tests.support.codemod import IDEAS

pytestmark = pytest.mark.usefixtures("stub_codemod")
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("MG110", "there is no code MG110; near: MG101 (the wrap becomes deepspeed.initialize)"),
        ("gradient_cliping", "there is no key, type or code gradient_cliping; near: gradient_clipping"),
        ("zzz", "there is no key, type or code zzz; `dsmigrate explain` lists the sections"),
    ],
)
def test_an_unknown_word_is_exit_code_2_with_the_nearest(capsys: Captured, word: str, says: str) -> None:
    assert run(["explain", word]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_an_unknown_release_is_exit_code_2(capsys: Captured) -> None:
    assert run(["explain", "fp16", "--target-version", "0.8.0"]) == 2
    assert "--target-version '0.8.0' is not a DeepSpeed release from 0.9 on" in capsys.readouterr().err


@pytest.mark.parametrize("spelling", ["MG101", "mg101", "101"])
def test_a_code_is_explained_with_its_example(capsys: Captured, spelling: str) -> None:
    assert run(["explain", spelling]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# MG101: the wrap becomes deepspeed.initialize\n")
    assert "+model, *_ = deepspeed.initialize(model=model)\n" in out


def test_json_of_a_code_is_its_catalogue_entry(capsys: Captured) -> None:
    assert run(["explain", "MG101", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["about"], found["code"], found["before"]) == ("code", "MG101", IDEAS[0].before)


def test_codes_lists_all(capsys: Captured) -> None:
    assert run(["explain", "codes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "MG101  converted  the wrap becomes deepspeed.initialize"
    codes = [line[:5] for line in lines if line.startswith("MG")]
    assert codes == ["MG101", *(idea.code for idea in LAUNCHERS), "MG900", "MG901", "MG998"]
    assert any(line.startswith("DS110  error ") for line in lines)
    assert "CV107  conversion  A key that is given twice." in lines


def test_a_code_of_a_conversion_is_told_with_why_and_what_to_do(capsys: Captured) -> None:
    assert run(["explain", "CV104"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# CV104: precision-is-false\n\n`mixed_precision: no` without quotes")
    assert "**Effect.** Accelerate, or DeepSpeed behind it, stops with an error. `dsmigrate check` reports it" in out
    assert "## What to do\n\nWrite `'no'` in quotes.\n" in out
    assert run(["explain", "CV104", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["about"], found["code"], found["kind"]) == ("code", "CV104", "conversion")
    assert (found["severity"], found["advice"]) == ("error", "Write `'no'` in quotes.")
    assert found["source"].startswith("accelerate/utils/launch.py:")


def test_markdown_is_the_page_of_the_docs(capsys: Captured) -> None:
    assert run(["explain", "MG901", "--format", "markdown"]) == 0
    assert "Nothing is written." in capsys.readouterr().out


def test_without_a_word_the_sections_are_listed(capsys: Captured) -> None:
    assert run(["explain"]) == 0
    out = capsys.readouterr().out
    assert "- `zero_optimization`: " in out
    assert "- `train_batch_size`: " in out
    assert "`AdamW`" in out
    assert run(["explain", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"] == "overview"


def test_a_key_is_told_for_the_release_that_is_asked_for(capsys: Captured) -> None:
    assert run(["explain", "gradient_clipping"]) == 0
    assert "default `1.0`" in capsys.readouterr().out
    assert run(["explain", "gradient_clipping", "--target-version", "0.19.2"]) == 0
    assert "default `0.0`" in capsys.readouterr().out


def test_json_of_a_key(capsys: Captured) -> None:
    assert run(["explain", "zero_optimization.reduce_bucket_size", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["default"] == 500_000_000
    assert found["exclusive_minimum"] == 0
    assert found["auto"]["transformers"] == {"effect": "filled", "from": "hidden_size squared"}
