from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsmigrate.cli.app import run

Captured = pytest.CaptureFixture[str]
SCHEMA = Path(__file__).parents[2] / "schemas" / "output" / "convert.schema.json"
DS = """{
  // ours
  "train_micro_batch_size_per_gpu": 4,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3}
}
"""
YAML = "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 3\n  zero_stag: 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds_config.json").write_text(DS)
    (tmp_path / "acc.yaml").write_text(YAML)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_result_goes_to_stdout_and_the_talk_to_stderr(capsys: Captured) -> None:
    asked = ["convert", "ds_config.json", "--to", "accelerate", "--carry", "fields", "--world-size", "2"]
    assert run(asked) == 1
    out, err = capsys.readouterr()
    assert "  zero_stage: 3\n" in out
    assert "num_processes: 2\n" in out
    title, first = err.splitlines()[:2]
    assert title == "not the same:"
    assert first.startswith("  ds_config.json:3: [CV203] train_micro_batch_size_per_gpu 4: Accelerate takes it from ")


def test_notes_name_a_file_by_its_shortest_path(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "configs"
    inner.mkdir()
    for here, name in ((folder, "ds_config.json"), (inner, os.path.join(os.pardir, "ds_config.json"))):  # noqa: PTH118
        monkeypatch.chdir(here)
        assert run(["convert", str(folder / "ds_config.json"), "--to", "accelerate", "--carry", "fields"]) == 1
        assert f"  {name}:3: [CV203] " in capsys.readouterr().err


def test_yaml_names_the_config_whose_keys_have_no_field(folder: Path, capsys: Captured) -> None:
    keys = '"train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "AdamW", "params": {"lr": 3e-5}}'
    (folder / "zero2.json").write_text(f'{{{keys}, "zero_optimization": {{"stage": 2, "overlap_comm": true}}}}')
    (folder / "fields.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
    assert run(["convert", "zero2.json", "--to", "accelerate", "--world-size", "2"]) == 0
    out, err = capsys.readouterr()
    assert "deepspeed_config:\n  deepspeed_config_file: zero2.json\n" in out
    assert "mixed_precision" not in out
    assert "[CV208] the YAML names zero2.json: 4 of its keys have no field" in err
    assert "zero2.json:1: [CV209] Accelerate makes the optimizer of the file: pass accelerate.utils.DummyOptim" in err
    assert run(["convert", "fields.json", "--to", "accelerate", "--world-size", "2"]) == 0
    out, err = capsys.readouterr()
    assert "  zero_stage: 2\n" in out
    assert err == ""


def test_what_a_named_config_does_not_say_is_told(folder: Path, capsys: Captured) -> None:
    zero = '"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2, "overlap_comm": true}'
    (folder / "zero2.json").write_text(f'{{"gradient_clipping": 1.0, {zero}}}')
    for carry in ("auto", "file"):
        asked = ["convert", "zero2.json", "--to", "accelerate", "--carry", carry, "--set", "gradient_clipping=5e-1"]
        assert run(asked) == 1
        out, err = capsys.readouterr()
        assert "deepspeed_config_file: zero2.json\n" in out
        assert "zero2.json:1: [CV208] zero2.json must say gradient_clipping 5e-1: the YAML names it" in err
    (folder / "train.py").write_text(f"ds_config = {{{zero.replace('true', 'True')}}}\n")
    asked = ["convert", "train.py", "--to", "accelerate", "--config-name", "new.json"]
    assert run(asked) == 1
    out, err = capsys.readouterr()
    assert "deepspeed_config_file: new.json\n" in out
    assert "[CV108] new.json is not there: --to deepspeed --output new.json writes it" in err
    assert run(["convert", "train.py", "--to", "deepspeed", "--output", "new.json"]) == 0
    assert run(asked) == 0
    auto = '"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}'
    (folder / "hf.json").write_text(f"{{{auto}, {zero}}}")
    capsys.readouterr()
    assert run(["convert", "hf.json", "--to", "accelerate"]) == 1
    out, err = capsys.readouterr()
    assert "deepspeed_config_file: hf.json\n" in out
    assert 'does not fill "auto" at `optimizer.params.betas`' in err


@pytest.mark.usefixtures("folder")
def test_what_is_carried_whole_is_exit_code_0(capsys: Captured) -> None:
    assert run(["convert", "ds_config.json", "--to", "dict"]) == 0
    assert capsys.readouterr().out.startswith('ds_config = {\n    "train_micro_batch_size_per_gpu": 4,\n')


@pytest.mark.parametrize("target", ["deepspeed", "accelerate", "plugin", "dict", "transformers"])
@pytest.mark.parametrize("source", ["ds_config.json", "acc.yaml"])
@pytest.mark.usefixtures("folder")
def test_the_json_is_as_its_schema_says(capsys: Captured, source: str, target: str) -> None:
    asked = ["--set", "train_micro_batch_size_per_gpu=2", "--set", "gradient_accumulation_steps=1"]
    assert run(["convert", source, "--to", target, "--format", "json", *asked]) in {0, 1}
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert found["target"]["form"] == target
    lines = {note["code"]: note["line"] for note in found["notes"]}
    assert source != "acc.yaml" or lines["CV101"] == 5


def test_write_edits_the_file_that_is_there(folder: Path, capsys: Captured) -> None:
    target = folder / "accelerate_config.yaml"
    target.write_text("# ours\nmachine_rank: 0\n")
    assert run(["convert", "ds_config.json", "--to", "accelerate", "--carry", "fields", "--write"]) == 1
    assert capsys.readouterr().out == ""
    assert target.read_text().startswith("# ours\nmachine_rank: 0\n")
    assert "deepspeed_config:\n  zero_stage: 3\n" in target.read_text()


def test_the_trainer_gets_a_config_and_its_arguments(folder: Path, capsys: Captured) -> None:
    assert run(["convert", "ds_config.json", "--to", "transformers", "--output", "hf.json"]) == 0
    assert json.loads((folder / "hf.json").read_text())["bf16"] == {"enabled": "auto"}
    assert capsys.readouterr().out == (
        "from transformers import TrainingArguments\n\ntraining_args = TrainingArguments(\n"
        "    per_device_train_batch_size=4,\n    bf16=True,\n    deepspeed='hf.json',\n)\n"
    )
    (folder / "train.py").write_text(
        "args = TrainingArguments(per_device_train_batch_size=4, bf16=True, deepspeed='hf.json')\n"
    )
    assert run(["convert", "train.py", "--to", "deepspeed"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "train_micro_batch_size_per_gpu": 4,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3},
    }


def test_comments_of_a_config_survive(folder: Path) -> None:
    (folder / "out.json").write_text(DS)
    assert run(["convert", "acc.yaml", "--to", "deepspeed", "--output", "out.json", "--arguments", '{"x": 1}']) == 2
    assert (folder / "out.json").read_text() == DS
    asked = ["--set", "train_micro_batch_size_per_gpu=8", "--set", "gradient_accumulation_steps=1"]
    assert run(["convert", "acc.yaml", "--to", "deepspeed", "--output", "out.json", *asked]) == 1
    assert (folder / "out.json").read_text().startswith('{\n  // ours\n  "train_micro_batch_size_per_gpu": 8,\n')


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.json", "--to", "dict"], "nowhere.json: no such file"),
        (["acc.yaml", "--to", "plugin", "--write"], "--write knows no name for the form plugin"),
        (["acc.yaml", "--to", "accelerate", "--write", "--output", "x"], "--write chooses the name itself"),
        (["acc.yaml", "--to", "dict", "--set", "x"], "--set 'x' is not KEY=VALUE"),
        (["acc.yaml", "--to", "dict", "--consumer", "me"], "--consumer 'me' does not exist"),
        (["acc.yaml", "--to", "dict", "--deepspeed-version", "0.1"], "--deepspeed-version '0.1'"),
        (["acc.yaml", "--to", "deepspeed"], '3 values are "auto"'),
        (["acc.yaml", "--to", "deepspeed", "--arguments", "no.py"], "no.py: no such file"),
        (["acc.yaml", "--to", "deepspeed", "--arguments", "{x"], "the arguments are no JSON"),
        (["acc.yaml", "--to", "accelerate", "--carry", "whole"], "--carry fields or file"),
        (["broken.json", "--to", "dict"], "broken.json:1:1: { is never closed"),
        (["broken.yaml", "--to", "dict"], "broken.yaml:2:2: not valid YAML"),
        (["broken.py", "--to", "dict"], "broken.py:1:"),
        (["plain.py", "--to", "dict"], "plain.py: the script has no settings of DeepSpeed"),
        (["binary.json", "--to", "dict"], "binary.json:2:1: byte 0xff at offset 2 is not valid UTF-8"),
        (
            ["ds_config.json", "--to", "plugin", "--output", "plain.py"],
            "there is no DeepSpeedPlugin(...) in the script",
        ),
    ],
)
def test_what_cannot_be_done_is_exit_code_2(folder: Path, capsys: Captured, arguments: list[str], says: str) -> None:
    (folder / "broken.json").write_text('{"a": 1,\n')
    (folder / "broken.yaml").write_text("a: [1\n]: 2\n")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "plain.py").write_text("x = 1\n")
    (folder / "binary.json").write_bytes(b"{\n\xff}")
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    assert run(["convert", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in " ".join(err.split())
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.skipif(os.name == "nt", reason="the encoding of a script is kept on every system alike")
def test_a_script_keeps_its_encoding(folder: Path) -> None:
    script = "# -*- coding: latin-1 -*-\nname = 'é'\nds_config = {'train_batch_size': 4}\n".encode("latin-1")
    (folder / "train.py").write_bytes(script)
    assert run(["convert", "train.py", "--to", "dict", "--output", "train.py", "--set", "train_batch_size=8"]) == 0
    assert (folder / "train.py").read_bytes() == script.replace(b"4}", b"8}")


def test_check_finds_what_is_wrong_at_its_line_in_yaml_and_scripts(folder: Path, capsys: Captured) -> None:
    (folder / "acc.yaml").write_text(YAML.replace("zero_stag: 1", "offload_param_device: nvme  # here"))
    (folder / "train.py").write_text(
        "import deepspeed\n\nds_config = {\n    'amp': {'enabled': False},\n    'train_batch_size': args.size,\n}\n"
    )
    assert run(["check", "acc.yaml", "train.py", "--format", "github"]) == 1
    found = [line.partition("::")[2].partition("::")[0] for line in ("x" + capsys.readouterr().out).splitlines()]
    assert [
        tuple(part for part in one.split(",") if part.startswith(("file", "error file", "line", "title")))
        for one in found
    ] == [
        ("error file=acc.yaml", "line=5", "title=DS520 (rejected)"),
        ("error file=train.py", "line=4", "title=DS110 (rejected)"),
    ]


def test_check_leaves_out_what_a_comment_asks_for(folder: Path, capsys: Captured) -> None:
    (folder / "acc.yaml").write_text(YAML.replace("zero_stag: 1", "zero_stag: 1  # dsmigrate: ignore[CV101]"))
    assert run(["check", "acc.yaml", "--min-severity", "warning"]) == 0
    assert run(["check", "acc.yaml", "--select", "CV"]) == 0
    (folder / "acc.yaml").write_text(YAML)
    assert run(["check", "acc.yaml", "--ignore", "CV101", "--min-severity", "warning"]) == 0
    capsys.readouterr()
    assert run(["check", "acc.yaml", "--select", "CV101", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)["runs"][0]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["CV101"]
    assert log["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 5


def test_check_mends_the_dictionary_of_a_script(folder: Path) -> None:
    (folder / "train.py").write_text(
        "# é\nds_config = {\n    'train_batch_size': 4,\n    'amp': {'enabled': False},  # no\n}\n"
    )
    assert run(["check", "train.py", "--select", "DS110", "--fix"]) == 0
    assert (folder / "train.py").read_text() == "# é\nds_config = {\n    'train_batch_size': 4,\n}\n"


def test_check_mends_mistyped_fields_of_yaml_and_a_precision_that_yaml_reads_as_false(folder: Path) -> None:
    file = folder / "acc.yaml"
    file.write_text(YAML.replace("zero_stag: 1", "gradient_cliping: 1.0").replace("bf16", "no"))
    run(["check", "acc.yaml", "--select", "CV", "--fix"])
    assert file.read_text() == YAML.replace("zero_stag: 1", "gradient_cliping: 1.0").replace("bf16", "'no'")
    run(["check", "acc.yaml", "--select", "CV", "--fix", "--unsafe-fixes"])
    assert file.read_text() == YAML.replace("zero_stag: 1", "gradient_clipping: 1.0").replace("bf16", "'no'")
    file.write_text(YAML)
    run(["check", "acc.yaml", "--select", "CV", "--fix", "--unsafe-fixes"])
    assert file.read_text() == YAML, "the field that was meant is there already"


def test_a_directory_is_searched_for_yaml_of_accelerate(folder: Path, capsys: Captured) -> None:
    (folder / "other.yaml").write_text("name: x\n")
    run(["check", ".", "--select", "CV101"])
    assert "acc.yaml:5:3: warning[CV101]" in capsys.readouterr().out


def test_the_diff_compares_forms_by_what_they_do(folder: Path, capsys: Captured) -> None:
    (folder / "new.yaml").write_text(YAML.replace("zero_stage: 3", "zero_stage: 2"))
    assert run(["diff", "acc.yaml", "new.yaml", "--format", "json"]) == 1
    changes = {change["code"]: change for change in json.loads(capsys.readouterr().out)["changes"]}
    assert changes["DF403"]["path"] == "zero_optimization.stage"
    assert changes["DF403"]["new_range"]["start"] == {"line": 3, "character": 2}
    same = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\nmixed_precision: 'bf16'\n"
    (folder / "same.yaml").write_text(same)
    assert run(["diff", "acc.yaml", "same.yaml"]) == 0
    script = "ds_config = {'zero_optimization': {'stage': args.stage}, 'train_batch_size': 4}\n"
    (folder / "train.py").write_text(script)
    (folder / "new.py").write_text(script.replace("4}", "8}"))
    assert run(["diff", "train.py", "new.py"]) == 1
    assert "train_batch_size: 4 → 8" in capsys.readouterr().out
    (folder / "train.py").write_text(script + script.replace("ds_", "deepspeed_"))
    assert run(["diff", "train.py", "new.py"]) == 2
    assert "several config dictionaries" in capsys.readouterr().err


SCHEDULED = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": 1,
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {"stage": 2},
}
LAUNCH = "deepspeed train.py --deepspeed hf.json --per_device_train_batch_size 4 --learning_rate 2e-5 --bf16"


def scheduled(capsys: Captured, *more: str) -> tuple[int, dict[str, Any] | None, str]:
    Path("hf.json").write_text(json.dumps(SCHEDULED))
    code = run(["convert", "hf.json", "--to", "deepspeed", "--world-size", "2", *more])
    out, err = capsys.readouterr()
    return code, json.loads(out)["scheduler"]["params"] if code == 0 else None, err


def test_launch_lines_beside_a_config_fill_it(folder: Path, capsys: Captured) -> None:
    (folder / "run.sh").write_text(f"{LAUNCH} --max_steps 1000 --warmup_ratio 0.1\n")
    code, scheduler, err = scheduled(capsys)
    assert (code, scheduler) == (0, {"total_num_steps": 1000, "warmup_num_steps": 100})
    assert 'arguments that fill "auto": run.sh:1\n' in err
    assert scheduled(capsys, "--set", "max_steps=50")[1] == {"total_num_steps": 50, "warmup_num_steps": 5}
    asked = '{"max_steps": 8, "warmup_steps": 2, "learning_rate": 1, "per_device_train_batch_size": 1, "bf16": true}'
    assert scheduled(capsys, "--arguments", asked)[1] == {"total_num_steps": 8, "warmup_num_steps": 2}


def test_what_launch_lines_say_otherwise_stays_unknown(folder: Path, capsys: Captured) -> None:
    (folder / "run.sh").write_text(f"{LAUNCH} --max_steps 1000 --warmup_steps 7\n{LAUNCH} --max_steps 9\n")
    code, _, err = scheduled(capsys)
    assert code == 2
    assert [line.split()[0] for line in err.splitlines()[1:]] == [
        "scheduler.params.total_num_steps",
        "scheduler.params.warmup_num_steps",
    ]


def test_a_call_beside_a_config_has_the_defaults_of_what_it_does_not_say(folder: Path, capsys: Captured) -> None:
    call = "TrainingArguments(output_dir=o, max_steps=500, warmup_ratio=0.05, deepspeed='hf.json')"
    (folder / "train.py").write_text(f"from transformers import TrainingArguments\nargs = {call}\n")
    assert scheduled(capsys)[:2] == (0, {"total_num_steps": 500, "warmup_num_steps": 25})
