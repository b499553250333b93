"""The command follows the modules a script trains with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.schemas_location import schema_file
from tests.codemod.checks import script
from tests.codemod.projects import ENGINE, ENTRY
from tests.migration.test_sets import write

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE})


def test_without_following_the_script_is_refused(capsys: Captured) -> None:
    assert run(["train.py", "--no-follow"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "MG910" in err


def test_a_root_that_does_not_hold_the_script_is_wrong_usage(capsys: Captured) -> None:
    Path("other").mkdir()
    assert run(["train.py", "--root", "other"]) == 2
    assert "--root other: train.py is not below it" in capsys.readouterr().err


def test_a_module_outside_of_the_root_is_not_followed() -> None:
    Path("tools").mkdir()
    Path("train.py").rename("tools/train.py")
    assert run(["tools/train.py", "--root", "tools"]) == 1
    assert run(["tools/train.py", "--root", "."]) == 0


def test_a_root_that_is_a_package_is_imported_from_the_folder_above(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    imported = "import sys\n    sys.path.append('..')\n    from lab import engine"
    write(tmp_path, {"lab/train.py": ENTRY.replace("import engine", imported), "lab/engine.py": ENGINE})
    Path("lab/.git").mkdir()
    monkeypatch.chdir("lab")
    assert run(["train.py"]) == 0
    assert "+++ b/engine.py" in capsys.readouterr().out


def test_every_file_has_its_diff(capsys: Captured) -> None:
    assert run(["train.py", "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if line.startswith("+++ ")] == [
        "+++ b/train.py", "+++ b/ds_config.json", "+++ b/engine.py",
    ]  # fmt: skip
    assert "engine.py:7  MG401" in err


def test_a_patch_made_below_the_root_of_a_project_names_files_from_there(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".git").mkdir()
    Path("tools").mkdir()
    shutil.copy(EXAMPLES / "imagenet_resnet.py", "tools/main.py")
    monkeypatch.chdir("tools")
    assert run(["main.py"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("+++ ")] == [
        "+++ b/main.py", "+++ b/ds_config.json", "+++ b/ds_compat.py",
    ]  # fmt: skip


def test_a_patch_of_files_above_the_current_folder_has_no_way_up_in_it(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in (".git", "tools", "engines"):
        Path(folder).mkdir()
    write(
        tmp_path,
        {"tools/train.py": ENTRY.replace("import engine", "from engines import engine"), "engines/engine.py": ENGINE},
    )
    monkeypatch.chdir("tools")
    assert run(["train.py"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("+++ ")] == [
        "+++ b/tools/train.py", "+++ b/tools/ds_config.json", "+++ b/engines/engine.py",
    ]  # fmt: skip


def test_all_files_are_written_or_none() -> None:
    before = Path("engine.py").read_text()
    Path("ds_config.json").write_text('{"train_batch_size": 3}')
    assert run(["train.py", "--write"]) == 2
    assert Path("engine.py").read_text() == before
    assert run(["train.py", "--write", "--force"]) == 0
    assert "net.backward(loss)" in Path("engine.py").read_text()
    assert "deepspeed.initialize" in Path("train.py").read_text()
    assert run(["train.py", "--write"]) == 0


def test_json_lists_every_file(capsys: Captured) -> None:
    assert run(["train.py", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads(schema_file("output/migrate.schema.json").read_text()))
    assert [(file["path"], file["status"]) for file in found["files"]] == [
        ("train.py", "converted"), ("engine.py", "converted"),
    ]  # fmt: skip
    assert found["config_path"] == "ds_config.json"
    assert [file["config"] is None for file in found["files"]] == [False, True]


def test_a_directory_is_converted_as_its_scripts_need_it(capsys: Captured) -> None:
    assert run([".", "--format", "json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert sorted(file["path"] for file in files) == ["engine.py", "train.py"]


def test_what_goes_elsewhere_is_started_in_the_place_of_the_originals(capsys: Captured) -> None:
    assert run(["train.py", "--output", "out"]) == 0
    err = capsys.readouterr().err
    assert "Put these files in the place of the originals" in err
    assert " train.py\n" in err
    assert "out/train.py\n" in err.partition("Put these")[0]
    assert "out/train.py" not in err.partition("Put these")[2]


def test_a_file_that_python_cannot_read_is_no_crash_of_an_output_elsewhere(capsys: Captured) -> None:
    Path("deep.py").write_text("x = " + "-" * 100_000 + "1\n")
    assert run(["deep.py", "--output", "out"]) == 2
    err = capsys.readouterr().err
    assert "nested" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("imported", "beside"),
    [("import digits", "digits.py"), ("from lab.digits import data", "lab/digits.py"), ("import numpy", None)],
)
def test_a_script_that_imports_what_lies_beside_it_runs_there_alone(
    capsys: Captured, imported: str, beside: str | None
) -> None:
    Path("alone.py").write_text(f"{imported}\n{script()}")
    if beside is not None:
        Path(beside).parent.mkdir(exist_ok=True)
        Path(beside).write_text("data = []\n")
    assert run(["alone.py", "--output", "out"]) == 0
    assert ("Put these files in the place of the originals" in capsys.readouterr().err) is (beside is not None)
