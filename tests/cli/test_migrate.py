from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.schemas_location import schema_file

CONVERT, TODO, REFUSE = "x = 1\n# stub: convert\n", "# stub: todo\n# batch: 4\n", "# stub: refuse\n"
CONFIG = '{\n    "train_micro_batch_size_per_gpu": 8,\n    "zero_optimization": {\n        "stage": 2\n    }\n}\n'

pytestmark = pytest.mark.usefixtures("stub_codemod")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def script(text: str, name: str = "train.py") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def tree() -> dict[str, str]:
    return {path.as_posix(): path.read_text() for path in sorted(Path().rglob("*")) if path.is_file()}


# ---------------------------------------------------------------------------------------------- nothing is written


def test_an_unchanged_script_is_exit_code_0_and_an_empty_stdout(capsys: Captured) -> None:
    script("x = 1\n")
    assert run(["train.py"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("train.py: unchanged\n")


def test_a_patch_goes_to_stdout_and_the_report_to_stderr(capsys: Captured) -> None:
    script(CONVERT)
    before = tree()
    assert run(["train.py", "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n x = 1\n-# stub: convert\n")
    assert "--- /dev/null\n+++ b/ds_config.json\n@@ -0,0 +1,6 @@\n+{\n" in out
    assert "    train.py:2  MG101  the wrap becomes deepspeed.initialize  (it is the engine)\n" in err
    assert "dsmigrate train.py --write\n" in err
    assert tree() == before


def test_what_is_printed_can_be_applied(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    source = "# coding: latin-1\r\n# stub: convert é\r\nx = 'ä'\r\n".encode("latin-1")
    Path("train.py").write_bytes(source)
    run(["train.py"])
    subprocess.run(["git", "apply", "-"], input=capsysbinary.readouterr().out, check=True)
    assert Path("train.py").read_bytes() == source.replace(b"stub: convert", b"done ds_config.json None")
    assert Path("ds_config.json").read_text() == CONFIG


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([CONVERT], 0),
        ([TODO], 1),
        ([REFUSE], 1),
        (["x = 1\n", REFUSE], 1),
        (["print 'x'\n"], 2),
        ([CONVERT, "\0"], 2),
        (["# stub: crash\n"], 2),
    ],
)
def test_the_exit_code_tells_what_is_left(texts: list[str], code: int) -> None:
    paths = [str(script(text, f"{index}.py")) for index, text in enumerate(texts)]
    assert run(paths) == code
    assert run([*paths, "--format", "json", "--jobs", "2"]) == code


def test_quiet_leaves_the_patch_and_the_errors(capsys: Captured) -> None:
    script(CONVERT)
    script("print 'x'\n", "old.py")
    assert run(["train.py", "old.py", "-q"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("--- a/train.py")
    assert err == "old.py:1: MG900 this is Python 2, not Python 3: Missing parentheses in call to 'print'\n"


def test_standard_input_is_a_script(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONVERT.encode())))
    assert run(["-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("--- a/<stdin>\n")
    assert "--write" not in err


def test_settings_files_hold_and_flags_override_them(capsys: Captured) -> None:
    script(CONVERT, "a/train.py")
    script(CONVERT, "b/train.py")
    script("[tool.dsmigrate]\nzero-stage = 3\n", "a/pyproject.toml")
    run(["a/train.py", "b/train.py", "-q"])
    assert "done ds_config.json 3\n" in (out := capsys.readouterr().out)
    assert "done ds_config.json None\n" in out
    run(["a", "--zero-stage", "1", "-q"])
    assert "done ds_config.json 1\n" in capsys.readouterr().out


def test_json_is_the_contract_and_nothing_else(capsys: Captured) -> None:
    script(TODO)
    script(REFUSE, "gan.py")
    assert run(["train.py", "gan.py", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    jsonschema.validate(found, json.loads(schema_file("output/migrate.schema.json").read_text()))
    assert [file["status"] for file in found["files"]] == ["converted_with_todos", "refused"]
    assert found["config"]["train_micro_batch_size_per_gpu"] == 4
    assert (found["config_path"], found["written"]) == ("ds_config.json", [])
    assert err == ""


# ---------------------------------------------------------------------------------------------------- usage errors


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.py"], "none.py: no such file or directory"),
        (["explian"], "did you mean the command explain?"),
        (["train.py", "--write", "--output", "out"], "give one of the two"),
        (["-", "--write"], "no file to write to"),
        (["-", "train.py"], "give it alone"),
        (["train.py", "--zero-stage", "4"], "--zero-stage 4 does not exist; allowed: 0, 1, 2, 3"),
        (["train.py", "--zero-stage", "two"], "'two' is not a valid integer"),
        (["train.py", "--target-version", "0.20"], "known: 0.9.0-0.9.5"),
        (["train.py", "--config", "none.json"], "--config none.json: no such file"),
        (["train.py", "--jobs", "0"], "0 is not in the range"),
        (["train.py", "--wriet"], "--write"),
        (["empty"], "no Python files in empty"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_to_write(capsys: Captured, arguments: list[str], says: str) -> None:
    script(CONVERT)
    Path("empty").mkdir()
    before = tree()
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in " ".join(err.split())
    assert tree() == before


def test_a_wrong_settings_file_is_said_with_its_line(capsys: Captured) -> None:
    script(CONVERT)
    script("\nzero-stag = 2\n", "dsmigrate.toml")
    assert run(["train.py"]) == 2
    assert "dsmigrate.toml:2: unknown setting 'zero-stag'; did you mean zero-stage?" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------- writing


def test_write_rewrites_in_place_and_puts_the_config_beside(capsys: Captured) -> None:
    script(CONVERT, "src/train.py").chmod(0o755)
    assert run(["src/train.py", "--write"]) == 0
    out, err = capsys.readouterr()
    assert tree() == {"src/train.py": "x = 1\n# done ds_config.json None\n", "src/ds_config.json": CONFIG}
    assert Path("src/train.py").stat().st_mode & 0o777 == 0o755
    assert out == ""
    assert "wrote src/train.py\nwrote src/ds_config.json\n" in err


def test_a_second_run_changes_nothing(capsys: Captured) -> None:
    script(CONVERT)
    run(["train.py", "--write", "-q"])
    after = tree()
    assert run(["train.py", "--write", "-q"]) == 0
    assert tree() == after
    assert capsys.readouterr().out == ""


def test_output_leaves_the_originals_alone_and_keeps_the_paths_below_a_directory(capsys: Captured) -> None:
    script(CONVERT, "proj/train.py")
    script(CONVERT, "proj/sub/deep.py")
    script("y = 1\n", "proj/utils.py")
    before = tree()
    assert run(["proj", "--output", "out/new"]) == 0
    done = "x = 1\n# done ds_config.json None\n"
    assert tree() == before | {
        "out/new/train.py": done,
        "out/new/ds_config.json": CONFIG,
        "out/new/sub/deep.py": done,
        "out/new/sub/ds_config.json": CONFIG,
    }
    assert capsys.readouterr().out == ""


def test_output_of_one_script_lies_directly_in_the_directory() -> None:
    script(CONVERT, "a/b/train.py")
    run(["a/b/train.py", "--output", "out", "--format", "json"])
    assert sorted(tree()) == ["a/b/train.py", "out/ds_config.json", "out/train.py"]


def test_the_launch_of_what_goes_elsewhere_names_what_was_written(capsys: Captured) -> None:
    script(CONVERT, "a/train.py")
    run(["a/train.py", "--output", "out dir"])
    err = capsys.readouterr().err
    assert "    torchrun --nproc_per_node=2 'out dir/train.py'\n" in err
    assert "=2 a/train.py" not in err


def test_output_never_overwrites_an_original(capsys: Captured) -> None:
    script(CONVERT)
    before = tree()
    assert run(["train.py", "--output", ".", "--force"]) == 2
    assert "would overwrite the original" in capsys.readouterr().err
    assert tree() == before


def test_output_of_two_scripts_with_one_name_is_refused(capsys: Captured) -> None:
    script(CONVERT, "a/train.py")
    script(CONVERT, "b/train.py")
    assert run(["a/train.py", "b/train.py", "--output", "out"]) == 2
    assert "would both become out/train.py" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_different_file_in_the_output_directory_is_not_replaced_unasked(capsys: Captured) -> None:
    script(CONVERT)
    script("mine\n", "out/train.py")
    assert run(["train.py", "--output", "out"]) == 2
    assert "out/train.py: already there with other content" in " ".join(capsys.readouterr().err.split())
    assert tree()["out/train.py"] == "mine\n"
    assert run(["train.py", "--output", "out", "--force"]) == 0
    assert tree()["out/train.py"] == "x = 1\n# done ds_config.json None\n"
    assert run(["train.py", "--output", "out"]) == 0


def test_output_says_which_config_it_would_replace_in_its_place(capsys: Captured) -> None:
    script(CONVERT)
    script('{"train_batch_size": 1}\n', "ds_config.json")
    assert run(["train.py", "--output", "out"]) == 0
    said = "ds_config.json is there and differs: out/ds_config.json would replace it in its place, --config-name NAME"
    assert said in capsys.readouterr().err
    assert run(["train.py", "--output", "named", "--config-name", "ds.json", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["replaced"] == []


def test_output_says_that_a_script_beside_would_get_a_config_of_the_same_name(capsys: Captured) -> None:
    script(CONVERT)
    script("model = DistributedDataParallel(model)\n# stub: convert\n", "tune.py")
    assert run(["train.py", "--output", "out"]) == 0
    err = capsys.readouterr().err
    assert "ds_config.json would be the name of another script's config too" in err
    assert "in a run of its own (tune.py): convert them in one run, or give --config-name NAME" in err
    assert run(["train.py", "tune.py", "--output", "out"]) == 0
    assert "another script's config" not in capsys.readouterr().err


def test_a_different_config_is_not_replaced_unasked(capsys: Captured) -> None:
    script(CONVERT)
    script('{"train_batch_size": 1}\n', "ds_config.json")
    before = tree()
    assert run(["train.py"]) == 0
    out, err = capsys.readouterr()
    assert '--- a/ds_config.json\n+++ b/ds_config.json\n@@ -1 +1,6 @@\n-{"train_batch_size": 1}\n' in out
    assert "ds_config.json is there and differs" in err
    assert run(["train.py", "--write"]) == 2
    assert "ds_config.json: already there with other content; --force" in " ".join(capsys.readouterr().err.split())
    assert tree() == before
    assert run(["train.py", "--write", "--config-name", "ds.json", "-q"]) == 0
    assert tree()["ds_config.json"] == before["ds_config.json"]
    assert tree()["train.py"] == "x = 1\n# done ds.json None\n"


def test_force_replaces_a_config() -> None:
    script(CONVERT)
    script("{}", "ds_config.json")
    assert run(["train.py", "--write", "--force"]) == 0
    assert tree()["ds_config.json"] == CONFIG


def test_a_config_that_means_the_same_stays_with_its_comments(capsys: Captured) -> None:
    text = '{\n  # eight fit\n  "zero_optimization": {"stage": 2},\n  "train_micro_batch_size_per_gpu": 8\n}\n'
    script(CONVERT)
    script(text, "ds_config.json")
    assert run(["train.py", "--write"]) == 0
    assert tree()["ds_config.json"] == text
    assert "wrote ds_config.json" not in capsys.readouterr().err


def test_scripts_with_different_configs_in_one_directory_get_one_each() -> None:
    script(CONVERT, "a.py")
    script(TODO, "b.py")
    script(CONVERT, "sub/c.py")
    assert run([".", "--write"]) == 1
    assert tree()["a.py"] == "x = 1\n# done ds_config.a.json None\n"
    assert sorted(tree()) == [
        "a.py",
        "b.py",
        "ds_config.a.json",
        "ds_config.b.json",
        "sub/c.py",
        "sub/ds_config.json",
    ]


def test_scripts_with_one_config_share_it() -> None:
    script(CONVERT, "a.py")
    script(CONVERT, "b.py")
    run([".", "--write"])
    assert sorted(tree()) == ["a.py", "b.py", "ds_config.json"]


def test_a_failed_write_is_exit_code_2_and_leaves_everything(capsys: Captured) -> None:
    script(CONVERT, "a.py")
    script(CONVERT, "b.py").chmod(0o444)
    before = tree()
    assert run(["a.py", "b.py", "--write", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert tree() == before
    assert json.loads(out)["written"] == []
    assert err == "Error: b.py: the file is read-only. Nothing was written\n"


def test_a_symlink_out_of_the_tree_is_not_written_through(capsys: Captured) -> None:
    script(CONVERT, "elsewhere/train.py")
    Path("proj").mkdir()
    Path("proj/train.py").symlink_to("../elsewhere/train.py")
    assert run(["proj/train.py", "--write"]) == 2
    assert "a symlink leads out of proj" in capsys.readouterr().err
    assert tree()["elsewhere/train.py"] == CONVERT


def test_refused_and_broken_files_stay_while_the_others_are_written() -> None:
    script(CONVERT, "a.py")
    script(REFUSE, "b.py")
    script("print 'x'\n", "c.py")
    assert run([".", "--write", "-q"]) == 2
    assert sorted(tree()) == ["a.py", "b.py", "c.py", "ds_config.json"]
    assert tree()["a.py"].endswith("# done ds_config.json None\n")
    assert (tree()["b.py"], tree()["c.py"]) == (REFUSE, "print 'x'\n")
