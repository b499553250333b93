"""The command with the real codemod, over the examples and a few files that are not Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.migration.catalogue import every_idea
from dsmigrate.schemas_location import schema_file

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SCHEMA = json.loads(schema_file("output/migrate.schema.json").read_text(encoding="utf-8"))
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "example",
    [*EXAMPLES[::5], *(pytest.param(path, marks=pytest.mark.broad) for path in EXAMPLES if path not in EXAMPLES[::5])],
    ids=lambda path: path.stem,
)
def test_an_example_is_converted_in_full_by_every_way_out(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("patched", "written"):
        Path(folder).mkdir()
        shutil.copy(example, folder)
    script = example.name

    code = run([f"patched/{script}", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert code == (0 if found["files"][0]["status"] == "converted" else 1)
    assert found["files"][0]["status"] in {"converted", "converted_with_todos"}
    assert {change["code"] for change in found["files"][0]["changes"]} <= {idea.code for idea in every_idea()}

    assert run([f"patched/{script}", "--quiet"]) == code
    subprocess.run(["git", "apply", "-"], input=capsys.readouterr().out.encode(), check=True)
    assert run([f"written/{script}", "--write", "--quiet"]) == code
    assert run([str(example), "--output", "out", "--quiet"]) == code
    results = [
        {path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("patched", "written", "out")
    ]
    assert results[0] == results[1] == results[2]
    assert json.loads(results[0]["ds_config.json"]) == found["config"]

    assert run(["written", "--write", "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    scripts = sorted(f"written/{name}" for name in results[1] if name.endswith(".py"))
    assert script in results[1]
    assert [(file["path"], file["status"], file["diff"]) for file in again["files"]] == [
        (path, "unchanged", "") for path in scripts
    ]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"print 'loss', loss\n", "this is Python 2, not Python 3"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "NUL byte"),
        (b"\x89PNG\r\n", "byte 0x89 is not valid utf-8"),
        (b"x = 1\n\x00", "NUL byte"),
        (b"import torch\n" + b"#" * 10 * 1024 * 1024, "the file has 10.0 MiB; files up to 4 MiB are read"),
        (b"loss.backward()\nx = " + b"(" * 5000 + b")" * 5000 + b"\n", "too many nested parentheses"),
        (b"loss.backward()\nx = " + b"-" * 5000 + b"1\n", "nested"),
    ],
)
def test_what_is_no_python_is_a_message_and_exit_code_2(
    source: bytes, says: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "train.py").write_bytes(source)
    assert run([str(tmp_path / "train.py"), "--write", "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    (change,) = found["files"][0]["changes"]
    assert found["files"][0]["status"] == "error"
    assert says in change["message"]
    assert change["code"] == "MG900"
    assert (tmp_path / "train.py").read_bytes() == source


def test_an_empty_file_is_unchanged(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "train.py").write_bytes(b"")
    assert run([str(tmp_path / "train.py")]) == 0
    assert capsys.readouterr().out == ""
