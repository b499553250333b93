from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run

Captured = pytest.CaptureFixture[str]
SCHEMAS = Path(__file__).parents[2] / "schemas" / "output"
BAD = """{
  "train_batch_size": 8,
  "amp": {"enabled": false}, // café
  "fp16": {"enabled": true}
}
"""
MENDED = """{
  "train_batch_size": 8,
  "fp16": {"enabled": true}
}
"""
GOOD = '{"train_batch_size": 8, "gradient_clipping": 1.0}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds_config.json").write_text(BAD, encoding="utf-8")
    (tmp_path / "good.json").write_text(GOOD, encoding="utf-8")
    (tmp_path / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    return tmp_path


SELECT = ["--select", "DS110"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.json"], "nowhere.json: no such file or directory"),
        (["*.hjson"], "*.hjson: the pattern matches no file"),
        (["ds_config.json", "--consumer", "somebody"], "--consumer 'somebody' does not exist"),
        (["ds_config.json", "--world-size", "0"], "--world-size 0 is not a number of processes"),
        (["ds_config.json", "--select", "E501"], "--select: 'E501' is no code of a rule"),
        (["ds_config.json", "--deepspeed-version", "0.8.0"], "--deepspeed-version '0.8.0' is not a DeepSpeed release"),
        (["ds_config.json", "--parameters", "many"], "--parameters 'many' is not a number of parameters"),
        (["-", "ds_config.json"], "standard input (-) is a config of its own"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_is_exit_code_2(capsys: Captured, arguments: list[str], says: str) -> None:
    assert run(["check", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_directory_without_configs_is_exit_code_2(folder: Path, capsys: Captured) -> None:
    (folder / "empty").mkdir()
    assert run(["check", "empty"]) == 2
    assert "no DeepSpeed config in empty" in capsys.readouterr().err


def test_a_good_file_is_silent_and_exit_code_0(folder: Path, capsys: Captured) -> None:
    assert run(["check", str(folder / "good.json"), *SELECT]) == 0
    assert capsys.readouterr().out.startswith("1 file: nothing to report (DeepSpeed ")


@pytest.mark.usefixtures("folder")
def test_a_finding_is_shown_with_its_line_underlined(capsys: Captured) -> None:
    assert run(["check", "ds_config.json", *SELECT]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ds_config.json:3:3: error[DS110] ")
    assert lines[1] == '3 |   "amp": {"enabled": false}, // café'
    assert lines[2] == "  |   ^^^^^"
    assert lines[3] == "  fix: Remove `amp`"


@pytest.mark.usefixtures("folder")
def test_directories_and_patterns_find_configs_by_their_keys(capsys: Captured) -> None:
    assert run(["check", ".", "--format", "json", *SELECT]) == 1
    assert [file["path"] for file in json.loads(capsys.readouterr().out)["files"]] == ["ds_config.json", "good.json"]
    assert run(["check", "ds_*.json", "--format", "json", *SELECT]) == 1
    assert [file["path"] for file in json.loads(capsys.readouterr().out)["files"]] == ["ds_config.json"]


@pytest.mark.usefixtures("folder")
def test_json_keeps_its_contract(capsys: Captured) -> None:
    schema = json.loads((SCHEMAS / "check.schema.json").read_bytes())
    jsonschema.Draft7Validator.check_schema(schema)
    assert run(["check", ".", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    jsonschema.Draft7Validator(schema).validate(found)
    [diagnostic] = [entry for entry in found["files"][0]["diagnostics"] if entry["code"] == "DS110"]
    assert diagnostic["range"] == {"start": {"line": 2, "character": 2}, "end": {"line": 2, "character": 7}}
    assert (diagnostic["key"], diagnostic["severity"], diagnostic["effect"]) == ("amp", "error", "rejected")
    assert diagnostic["fix"]["safe"] is True


@pytest.mark.usefixtures("folder")
def test_github_annotations_have_one_based_places(capsys: Captured) -> None:
    assert run(["check", "ds_config.json", "--format", "github", *SELECT]) == 1
    out = capsys.readouterr().out
    assert out.startswith("::error file=ds_config.json,line=3,endLine=3,title=DS110 (rejected),col=3,endColumn=8::")
    assert out.count("\n") == 1


def test_fix_writes_and_leaves_mode_and_other_lines(folder: Path, capsys: Captured) -> None:
    file = folder / "ds_config.json"
    file.chmod(0o640)
    assert run(["check", "ds_config.json", "--fix", *SELECT]) == 0
    assert file.read_text(encoding="utf-8") == MENDED
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "1 fixed" in capsys.readouterr().out
    assert run(["check", "ds_config.json", "--fix", *SELECT]) == 0
    assert file.read_text(encoding="utf-8") == MENDED


def test_diff_shows_the_mend_and_writes_nothing(folder: Path, capsys: Captured) -> None:
    assert run(["check", "ds_config.json", "--diff", *SELECT]) == 0
    out = capsys.readouterr().out
    assert '-  "amp": {"enabled": false}, // café\n' in out
    assert (folder / "ds_config.json").read_text(encoding="utf-8") == BAD


def test_standard_input_is_checked_and_mended(monkeypatch: pytest.MonkeyPatch, capsys: Captured, folder: Path) -> None:
    assert folder.is_dir()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert run(["check", "-", *SELECT]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:3:3: error[DS110] ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert run(["check", "-", "--fix", *SELECT]) == 0
    assert capsys.readouterr().out == MENDED


def test_settings_select_ignore_and_name_the_release(folder: Path, capsys: Captured) -> None:
    (folder / "dsmigrate.toml").write_text(
        '[check]\nselect = ["DS110"]\nper-file-ignores = {"ds_*.json" = ["DS1"]}\n', encoding="utf-8"
    )
    assert run(["check", "ds_config.json"]) == 0
    (folder / "dsmigrate.toml").write_text(
        '[check]\nselect = ["DS1"]\ndeepspeed-version = "0.19.6"\n', encoding="utf-8"
    )
    from dsmigrate.settings import toml  # noqa: PLC0415 - its cache is per process

    toml._find_table.cache_clear()
    capsys.readouterr()
    assert run(["check", "ds_config.json", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["deepspeed_version"] == "0.19.6"


def test_a_wrong_setting_is_named_with_its_line(folder: Path, capsys: Captured) -> None:
    (folder / "dsmigrate.toml").write_text('[check]\nselct = ["DS110"]\n', encoding="utf-8")
    assert run(["check", "ds_config.json"]) == 2
    assert "dsmigrate.toml:2: unknown setting 'selct'; did you mean select?" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_exit_zero_statistics_and_least_severity(capsys: Captured) -> None:
    assert run(["check", "ds_config.json", "--exit-zero", "--statistics", *SELECT]) == 0
    assert "     1  DS110\n" in capsys.readouterr().out
    assert run(["check", "ds_config.json", "--ignore", "DS", "--min-severity", "error"]) == 0


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00", b'{"a": "\xe9"}', b"\x00" * 40])
def test_a_file_that_cannot_be_read_is_named_and_holds_nothing_back(
    folder: Path, capsys: Captured, data: bytes
) -> None:
    (folder / "broken.json").write_bytes(data)
    code = run(["check", "broken.json", "ds_config.json", *SELECT])
    out = capsys.readouterr().out
    assert "ds_config.json:3:3" in out
    assert code in {1, 2}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_not_written(folder: Path, capsys: Captured) -> None:
    (folder / "ds_config.json").chmod(0o444)
    assert run(["check", "ds_config.json", "--fix", *SELECT]) == 2
    assert "Nothing was written" in capsys.readouterr().err


def test_the_readme_shows_what_is_printed(folder: Path, capsys: Captured) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Checking a config\n", 1)[1]
    config, shown = (section.split(f"```{kind}\n", 1)[1].split("```", 1)[0] for kind in ("json", "text"))
    (folder / "ds_config.json").write_text(config, encoding="utf-8")
    assert run(["check", "ds_config.json", "--deepspeed-version", "0.19.8"]) == 1
    assert capsys.readouterr().out.startswith(shown)


SGD = '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 2}}'
LOG = """step 1
[rank0]: AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> \
in the configuration file to use it.
[launch.py:319] [INFO] Killing subprocess 4711
[launch.py:319] [INFO] Killing subprocess 4712
"""


@pytest.fixture
def logged(folder: Path) -> Path:
    (folder / "ds_config.json").write_text(SGD, encoding="utf-8")
    (folder / "train.log").write_text(LOG, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("logged")
def test_messages_of_a_log_are_told_with_the_finding_that_explains_them(capsys: Captured) -> None:
    assert run(["check", "--log", "train.log", "ds_config.json", "--ignore", "DS8"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train.log:2: error[untested-zero-optimizer] You are using an untested ZeRO Optimizer.")
    assert lines[3].startswith("  ds_config.json:1: [DS660] ZeRO stage 2 takes `SGD` only with")
    assert lines[5] == "train.log:3: info[killing-subprocess] Killing subprocess 4711 (2 times)"
    assert "train.log: 2 known messages" in lines
    assert lines[lines.index("train.log: 2 known messages") + 1].startswith("ds_config.json:1:47: error[DS660] ")


@pytest.mark.usefixtures("logged")
def test_json_of_a_log(capsys: Captured) -> None:
    assert run(["check", "--log", "train.log", "ds_config.json", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((SCHEMAS / "check.schema.json").read_bytes()))
    first, second = found["logs"][0]["messages"]
    assert (first["id"], first["line"], first["count"]) == ("untested-zero-optimizer", 1, 1)
    assert first["explained_by"] == [{"path": "ds_config.json", "code": "DS660", "key": "optimizer.type"}]
    assert (second["id"], second["severity"], second["line"], second["count"]) == ("killing-subprocess", "info", 2, 2)


def test_a_log_needs_no_config_and_can_be_limited_to_errors(logged: Path, capsys: Captured) -> None:
    assert run(["check", "--log", "train.log", "--min-severity", "error", "--format", "github"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("::error file=train.log,line=2,title=untested-zero-optimizer::You are using an untested")
    (logged / "train.log").write_text("step 1\n", encoding="utf-8")
    assert run(["check", "--log", "train.log"]) == 0
    assert capsys.readouterr().out == "train.log: 0 known messages\n"


@pytest.mark.usefixtures("logged")
def test_sarif_has_the_messages_of_a_log_as_rules(capsys: Captured) -> None:
    assert run(["check", "--log", "train.log", "--log", "gone.log", "ds_config.json", "--format", "sarif"]) == 2
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    ids = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert [(result["ruleId"], ids[result["ruleIndex"]]) for result in found["results"]] == [
        (result["ruleId"], result["ruleId"]) for result in found["results"]
    ]
    assert found["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    assert found["results"][1]["occurrenceCount"] == 2
    (unread,) = found["invocations"][0]["toolExecutionNotifications"]
    assert unread["message"]["text"] == "no such file"


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "Missing argument"), (["--log", "train.log", "--diff", "ds_config.json"], "leave --log out")],
)
def test_a_log_that_makes_no_sense_is_wrong_usage(capsys: Captured, arguments: list[str], says: str) -> None:
    assert run(["check", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_what_is_not_shown_is_counted_and_not_fixed(folder: Path, capsys: Captured) -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": false}}'
    (folder / "ds_hint.json").write_text(text, encoding="utf-8")
    arguments = ["check", "ds_hint.json", "--consumer", "transformers", "--select", "DS816"]
    assert run(arguments) == 0
    assert "1 file: nothing to report; 1 more with --min-severity hint (" in capsys.readouterr().out
    run([*arguments, "--fix", "--unsafe-fixes"])
    assert (folder / "ds_hint.json").read_text(encoding="utf-8") == text
    run([*arguments, "--fix", "--unsafe-fixes", "--min-severity", "hint"])
    assert "gradient_clipping" in (folder / "ds_hint.json").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_arguments_of_the_flag_are_held_against_the_file(folder: Path, capsys: Captured) -> None:
    text = '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}'
    (folder / "ds_hf.json").write_text(text, encoding="utf-8")
    arguments = ["check", "ds_hf.json", "--consumer", "transformers", "--select", "DS814", "--arguments"]
    assert run([*arguments, "--per_device_train_batch_size 4"]) == 1
    said = capsys.readouterr().out
    assert "error[DS814]" in said
    assert "`--per_device_train_batch_size 4` (--arguments)" in said
    assert run([*arguments, "--per_device_train_batch_size 2"]) == 0


@pytest.mark.usefixtures("folder")
def test_notes_wait_while_the_file_is_rejected(folder: Path, capsys: Captured) -> None:
    text = '{"train_batch_size": 8, "mine": 1, "zero_optimization": {"stage": 7}}'
    (folder / "ds_note.json").write_text(text, encoding="utf-8")
    assert run(["check", "ds_note.json"]) == 1
    said = capsys.readouterr().out
    assert "[DS123]" in said
    assert "[DS103]" not in said
    assert "1 more with --min-severity hint" in said
    run(["check", "ds_note.json", "--min-severity", "info"])
    assert "[DS103]" in capsys.readouterr().out
    (folder / "ds_note.json").write_text(text.replace("7", "2"), encoding="utf-8")
    run(["check", "ds_note.json"])
    assert "[DS103]" in capsys.readouterr().out


def test_the_release_of_a_framework_is_the_pinned_one_or_the_one_asked_for(folder: Path, capsys: Captured) -> None:
    text = '{"train_batch_size": "auto", "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}'
    (folder / "auto.json").write_text(text, encoding="utf-8")
    (folder / "requirements.txt").write_text("transformers==4.40.1\n", encoding="utf-8")
    asked = ("check", "auto.json", "--select", "DS822")
    assert run([*asked]) == 1
    assert "Transformers Trainer 4.40.1: `stage3_prefetch_bucket_size` is filled" in capsys.readouterr().out
    assert run([*asked, "--transformers-version", "4.50.0"]) == 0
    assert run([*asked, "--consumer", "accelerate", "--accelerate-version", "0.30.1"]) == 1
    assert "Accelerate 0.30.1" in capsys.readouterr().out
    assert run([*asked, "--transformers-version", "newest"]) == 2
