from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run

Captured = pytest.CaptureFixture[str]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output" / "diff.schema.json").read_bytes())
OLD = """{
  // café
  "train_batch_size": 8,
  "gradient_clipping": 1.0,
  "steps_per_print": 10
}
"""
NEW = """{
  "train_batch_size": 8,
  "gradient_clipping": 0.5,
  "steps_per_print": 1e1,
  "prescale_gradients": false
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, text in {"old.json": OLD, "new.json": NEW, "same.json": OLD.replace("1.0", "1")}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_verdict_comes_first_and_what_does_nothing_is_counted(capsys: Captured) -> None:
    assert run(["diff", "old.json", "new.json", "--select", "DF1,DF301"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "old.json → new.json"
    assert lines[1].startswith("Changes training: clipping 1 → 0.5")
    assert "  gradient_clipping: 1 → 0.5" in lines
    assert "new.json:3" in "".join(lines)
    assert "prescale_gradients" not in "\n".join(lines)
    assert any("--all lists them" in line or "--all" in line for line in lines)
    assert lines[-1].startswith("DeepSpeed ")


@pytest.mark.usefixtures("folder")
def test_all_lists_what_does_nothing(capsys: Captured) -> None:
    run(["diff", "old.json", "new.json", "--all"])
    assert "prescale_gradients: – (false) → false" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_equivalent_files_are_exit_code_0(capsys: Captured) -> None:
    assert run(["diff", "old.json", "same.json"]) == 0
    assert "No semantic change" in capsys.readouterr().out


@pytest.mark.parametrize(("level", "code"), [("never", 0), ("breaking", 0), ("warning", 1), ("info", 1)])
@pytest.mark.usefixtures("folder")
def test_the_exit_code_follows_fail_on(level: str, code: int) -> None:
    assert run(["diff", "old.json", "new.json", "--fail-on", level]) == code


@pytest.mark.usefixtures("folder")
def test_json_keeps_its_contract(capsys: Captured) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert run(["diff", "old.json", "new.json", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft7Validator)
    clipping = next(one for one in found["changes"] if one["path"] == "gradient_clipping")
    assert (clipping["old"], clipping["new"], clipping["kind"]) == (1, 0.5, "changed")
    assert clipping["old_range"] == {"start": {"line": 3, "character": 2}, "end": {"line": 3, "character": 26}}
    assert clipping["new_range"]["start"] == {"line": 2, "character": 2}
    assert clipping["effects"] == ["numerics"]
    added = next(one for one in found["edits"] if one["path"] == "prescale_gradients")
    assert (added["kind"], added["old_range"], added["differs"]) == ("added", None, False)
    assert found["summary"]["verdict"].startswith("Changes training")
    assert found["summary"]["worst"] == "warning"


@pytest.mark.usefixtures("folder")
def test_json_takes_what_json_cannot_say(capsys: Captured) -> None:
    Path("odd.json").write_text('{"train_batch_size": 8, "gradient_clipping": Infinity, "my": {"a": [NaN]}}')
    assert run(["diff", "old.json", "odd.json", "--format", "json"]) == 1
    json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


@pytest.mark.usefixtures("folder")
def test_one_side_may_be_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(NEW.encode())))
    assert run(["diff", "old.json", "-"]) == 1
    assert "old.json → <stdin>" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_one_file_across_two_releases(capsys: Captured) -> None:
    Path("plain.json").write_text('{"train_batch_size": 8}')
    assert run(["diff", "plain.json", "--upgrade", "0.19.2..0.19.8"]) == 1
    said = capsys.readouterr().out
    assert "gradient_clipping: – (0.0) → – (1.0)" in said
    assert "DeepSpeed 0.19.2 → 0.19.8" in said
    assert run(["diff", "plain.json", "--from-version", "0.19.7", "--to-version", "0.19.8"]) == 0


@pytest.mark.usefixtures("folder")
def test_the_world_size_makes_equal_batches_equal(capsys: Captured) -> None:
    Path("a.json").write_text('{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2}')
    Path("b.json").write_text('{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}')
    assert run(["diff", "a.json", "b.json", "--world-size", "2"]) == 0
    assert "No semantic change" in capsys.readouterr().out
    assert run(["diff", "a.json", "b.json", "--gpus", "4"]) == 1


@pytest.mark.usefixtures("folder")
def test_settings_hold_until_a_flag_says_otherwise() -> None:
    Path("dsmigrate.toml").write_text('[diff]\nfail-on = "breaking"\n', encoding="utf-8")
    assert run(["diff", "old.json", "new.json"]) == 0
    assert run(["diff", "old.json", "new.json", "--fail-on", "warning"]) == 1
    Path("pyproject.toml").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["old.json"], "give NEW, or --upgrade A..B"),
        (["old.json", "nowhere.json"], "nowhere.json: no such file"),
        (["old.json", "."], ".: this is a directory"),
        (["-", "-"], "standard input (-) can be one side only"),
        (["old.json", "--upgrade", "0.16"], "names one release"),
        (["old.json", "--upgrade", "0.16..0.19.8", "--to-version", "0.19.8"], "says both releases"),
        (["old.json", "new.json", "--from-version", "0.8"], "is not a DeepSpeed release"),
        (["old.json", "new.json", "--fail-on", "error"], "allowed: breaking, warning, info, never"),
        (["old.json", "new.json", "--select", "DS1"], "'DS1' is no code of an explanation"),
        (["old.json", "new.json", "--consumer", "somebody"], "--consumer 'somebody' does not exist"),
        (["old.json", "binary.json"], "binary.json: "),
    ],
)
def test_wrong_usage_is_exit_code_2(folder: Path, capsys: Captured, arguments: list[str], says: str) -> None:
    (folder / "binary.json").write_bytes(b"\x00\xff\xfe\x80{")
    assert run(["diff", *arguments]) == 2
    said = capsys.readouterr()
    assert says in " ".join(said.err.split())
    assert said.out == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '{"zero_optimization": {"stage": 2,', "null", '{"fp16": null}', "\ufeff{}"]
)
@pytest.mark.usefixtures("folder")
def test_broken_text_is_a_finding_and_no_traceback(text: str, capsys: Captured) -> None:
    Path("broken.json").write_text(text, encoding="utf-8")
    assert run(["diff", "old.json", "broken.json"]) in {1, 2}
    said = capsys.readouterr()
    assert said.out or said.err


def test_releases_of_a_framework_are_compared(folder: Path, capsys: Captured) -> None:
    text = '{"train_batch_size": "auto", "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}'
    (folder / "z3.json").write_text(text, encoding="utf-8")
    command = ["diff", "z3.json", "--consumer", "transformers", "--target-version", "0.16.4", "--transformers-version"]
    assert run([*command, "4.46.3..4.44.2"]) == 1
    assert "Transformers Trainer 4.44.2 has a bug that this config meets and 4.46.3 had not" in capsys.readouterr().out
    run([*command, "4.44.2..4.46.3"])
    assert "Transformers Trainer 4.46.3 no longer has a bug of 4.44.2" in capsys.readouterr().out
    assert run([*command, "new"]) == 2
    assert "--transformers-version 'new' is not a release" in capsys.readouterr().err
