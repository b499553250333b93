from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.languages.spoken import ENGLISH, using
from dsmigrate.launchers.ideas import IDEAS as LAUNCHERS
from tests.support.codemod import IDEAS

pytestmark = pytest.mark.usefixtures("stub_codemod")
Captured = pytest.CaptureFixture[str]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output" / "explain.schema.json").read_bytes())


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


def test_a_pasted_message_is_explained(capsys: Captured) -> None:
    assert run(["explain", "[rank0]: AssertionError: MoE not supported with Stage 3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# moe-with-stage-3\n\n```text\nMoE not supported with Stage 3\n```\n")
    assert "\n**What to do.** Set `zero_optimization.stage` to 2." in out
    assert "- Keys: `zero_optimization.stage`\n" in out
    assert "raises `AssertionError` with it, in `deepspeed/runtime/engine.py`." in out


def test_words_without_quotes_and_standard_input_are_a_message(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["explain", "MoE", "not", "supported", "with", "Stage", "3"]) == 0
    told = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xffMoE not supported\nwith Stage 3\n")))
    assert run(["explain", "-"]) == 0
    assert capsys.readouterr().out == told


def test_a_text_that_is_only_like_a_message_is_told_the_nearest(capsys: Captured) -> None:
    assert run(["explain", "untested ZeRO Optimizer"]) == 0
    assert capsys.readouterr().out.startswith(
        "No known message reads like this. Nearest:\n\n# untested-zero-optimizer\n"
    )


def test_a_text_that_is_like_no_message_is_exit_code_2(capsys: Captured) -> None:
    assert run(["explain", "the loss is nan after some steps and the gradient norm grows"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "no known message is like the loss is nan after some steps and …" in said


def test_json_and_chinese_of_a_message(capsys: Captured) -> None:
    text = "ZeRO-3 does not yet support checkpointing with NVMe offloading, please disable for now."
    assert run(["explain", text, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert (found["about"], found["near"]) == ("message", False)
    (message,) = found["messages"]
    assert (message["id"], message["since"], message["last"]) == ("stage-3-nvme-checkpoint", None, "0.12.6")
    with using(ENGLISH):  # and again behind it
        assert run(["explain", text, "--lang", "zh-CN"]) == 0
    assert "\n**处理方法。** 升级到 0.13.0 或更新，或卸载到 CPU。\n" in capsys.readouterr().out
