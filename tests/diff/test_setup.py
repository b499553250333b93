"""The command that tells git about the diff, on real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.cli.app import run
from tests.diff.repository import NOWHERE, Repository

Captured = pytest.CaptureFixture[str]
STAGE_2 = '{\n  "train_batch_size": 8,\n  "zero_optimization": {"stage": 2}\n}\n'
STAGE_3 = STAGE_2.replace("2}", "3}")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    made = Repository.make(tmp_path / "work")
    made.commit({"ds_config.json": STAGE_2, "sub/package.json": '{"name": "web"}\n'})
    made.put({"ds_config.json": STAGE_3})
    monkeypatch.chdir(made.folder)
    return made


def test_after_it_git_diff_says_what_a_change_does(repository: Repository, capsys: Captured) -> None:
    assert run(["diff", "--git-setup", "command"]) == 0
    out = capsys.readouterr().out
    assert "set diff.deepspeed.command to: " in out
    assert "added to .gitattributes, which is to be committed: *.json diff=deepspeed" in out
    shown = repository.git("diff", GIT_PAGER_IN_USE="1", NO_COLOR="1").stdout
    assert "zero_optimization.stage: 2 → 3" in shown


def test_textconv_takes_the_place_of_the_command(repository: Repository, capsys: Captured) -> None:
    run(["diff", "--git-setup", "command"])
    capsys.readouterr()
    assert run(["diff", "--git-setup", "textconv"]) == 0
    assert "unset diff.deepspeed.command, which would win" in capsys.readouterr().out
    assert "-zero_optimization.stage = 2\n+zero_optimization.stage = 3\n" in repository.git("diff").stdout


def test_difftool_needs_no_attributes(repository: Repository) -> None:
    assert run(["diff", "--git-setup", "difftool"]) == 0
    assert not (repository.folder / ".gitattributes").exists()
    shown = repository.git("difftool", "--no-prompt", "--tool=dsmigrate", "--", "ds_config.json").stdout
    assert "zero_optimization.stage: 2 → 3" in shown


def test_a_second_run_changes_nothing(repository: Repository, capsys: Captured) -> None:
    run(["diff", "--git-setup", "command"])
    files = [repository.folder / name for name in (".gitattributes", ".git/config")]
    before = [file.read_bytes() for file in files]
    capsys.readouterr()
    assert run(["diff", "--git-setup", "command"]) == 0
    assert ".gitattributes names the files already" in capsys.readouterr().out
    assert [file.read_bytes() for file in files] == before


def test_attributes_of_others_stay_and_drivers_of_theirs_win(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put({".gitattributes": "*.py text\n*.hjson diff=mine"})
    monkeypatch.chdir(repository.folder / "sub")
    assert run(["diff", "--git-setup", "command"]) == 0
    assert (repository.folder / ".gitattributes").read_text() == (
        "*.py text\n*.hjson diff=mine\n*.json diff=deepspeed\n*.jsonc diff=deepspeed\n*.json5 diff=deepspeed\n"
    )


def test_a_link_out_of_the_repository_is_not_followed(repository: Repository, tmp_path: Path, capsys: Captured) -> None:
    outside = tmp_path / "outside"
    outside.write_text("*.py text\n", encoding="utf-8")
    (repository.folder / ".gitattributes").symlink_to(outside)
    assert run(["diff", "--git-setup", "command"]) == 2
    assert ".gitattributes cannot be written" in " ".join(capsys.readouterr().err.split())
    assert outside.read_text(encoding="utf-8") == "*.py text\n"


@pytest.mark.parametrize(("form", "says"), [("pager", "'pager' does not exist; allowed: command, textconv, difftool")])
def test_a_form_that_is_none_is_exit_code_2(repository: Repository, capsys: Captured, form: str, says: str) -> None:
    assert run(["diff", "--git-setup", form]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not repository.git("config", "--local", "--get", "diff.deepspeed.command", check=False).stdout


def test_outside_of_a_working_tree_it_is_exit_code_2(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert run(["diff", "--git-setup", "command"]) == 2
    assert "not a git repository" in " ".join(capsys.readouterr().err.split())
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    monkeypatch.chdir(bare)
    assert run(["diff", "--git-setup", "command"]) == 2
    assert "this repository is bare" in " ".join(capsys.readouterr().err.split())
