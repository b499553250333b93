"""The settings of a repository name programs; reading its files and comparing them starts none."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff.git import GitError, git
from tests.diff.repository import NOWHERE, Repository

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the planted programs are scripts of a Unix shell")

OLD = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n'
NEW = OLD.replace("2}", "3}")


@dataclass(frozen=True)
class Planted:
    """A repository with a program that says in ``trace`` that it ran."""

    repository: Repository
    program: Path
    trace: Path

    def config(self, name: str, value: str | None = None) -> None:
        self.repository.git("config", name, str(self.program) if value is None else value)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    repository = Repository.make(tmp_path / "work")
    trace, program = tmp_path / "trace", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{trace}"\ncat\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    repository.commit({"ds.json": OLD})
    repository.commit({"ds.json": NEW, "README.md": "Pins deepspeed==0.16.0\n"})
    monkeypatch.chdir(repository.folder)
    return Planted(repository, program, trace)


def monitor(planted: Planted) -> None:
    planted.config("core.fsmonitor")


def hook(planted: Planted) -> None:
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (planted.repository.folder / ".git/hooks" / name).symlink_to(planted.program)


def folder_of_hooks(planted: Planted) -> None:
    (planted.repository.folder / "hooks").mkdir()
    (planted.repository.folder / "hooks/post-index-change").symlink_to(planted.program)
    planted.config("core.hooksPath", "hooks")


def filters(planted: Planted) -> None:
    (planted.repository.folder / ".gitattributes").write_text("*.json filter=one\n")
    planted.config("filter.one.clean")
    planted.config("filter.one.smudge")
    planted.config("filter.one.required", "true")


def filter_process(planted: Planted) -> None:
    (planted.repository.folder / ".git/info").mkdir(exist_ok=True)
    (planted.repository.folder / ".git/info/attributes").write_text("* filter=a.b=c\n* filter=two\n")
    planted.config("filter.two.process")
    planted.config("filter.two.required", "true")


def filter_included(planted: Planted) -> None:
    filters(planted)
    planted.repository.git("config", "--unset", "filter.one.clean")
    (planted.repository.folder / "more").write_text(f'[filter "one"]\n\tclean = {planted.program}\n')
    planted.config("include.path", "../more")


def driver(planted: Planted) -> None:
    (planted.repository.folder / ".gitattributes").write_text("*.json diff=one\n")
    planted.config("diff.one.textconv")
    planted.config("diff.one.command")


def external_diff(planted: Planted) -> None:
    planted.config("diff.external")


def pager(planted: Planted) -> None:
    for name in ("core.pager", "pager.diff", "pager.show", "core.editor", "core.askPass", "core.sshCommand"):
        planted.config(name)


def signatures(planted: Planted) -> None:
    planted.config("log.showSignature", "true")
    planted.config("gpg.program")


def submodule(planted: Planted) -> None:
    inner = Repository.make(planted.repository.folder / "inner")
    inner.commit({"a.json": OLD})
    planted.repository.git("add", "inner")
    planted.repository.git("commit", "--quiet", "-m", "inner")
    inner.put({"a.json": NEW, ".gitattributes": "*.json filter=one\n"})
    for name in ("core.fsmonitor", "filter.one.clean", "filter.one.process"):
        inner.git("config", name, str(planted.program))


WAYS: list[Callable[[Planted], None]] = [
    monitor, hook, folder_of_hooks, filters, filter_process, filter_included, driver, external_diff, pager, signatures,
    submodule,
]  # fmt: skip
COMMANDS = (
    ["diff", "--git", "HEAD"],
    ["diff", "--git", "HEAD~1"],
    ["diff", "--git", "HEAD~1..HEAD"],
    ["diff", "--git", "HEAD~1", "ds.json"],
    ["diff", "HEAD~1:ds.json", "ds.json"],
    ["diff", ":ds.json", "ds.json"],
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("plant", WAYS, ids=lambda way: way.__name__)
def test_no_program_of_a_repository_is_started(
    planted: Planted, plant: Callable[[Planted], None], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plant(planted)
    (planted.repository.folder / "ds.json").write_text(OLD.replace("8", "16"))
    planted.trace.unlink(missing_ok=True)  # planting it may have run it
    os.utime("README.md", (1, 1))
    code = run(arguments)
    assert not planted.trace.exists(), planted.trace.read_text()
    assert code in {0, 1}, capsys.readouterr().err


@pytest.mark.parametrize("plant", [monitor, filters, filter_process, filter_included], ids=lambda way: way.__name__)
def test_git_by_itself_starts_what_is_planted(planted: Planted, plant: Callable[[Planted], None]) -> None:
    plant(planted)
    (planted.repository.folder / "ds.json").write_text(OLD.replace("8", "16"))
    planted.trace.unlink(missing_ok=True)
    planted.repository.git("diff", "HEAD", check=False)
    assert planted.trace.exists()


def test_what_a_partial_clone_lacks_is_not_fetched(
    planted: Planted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.config("uploadpack.allowFilter", "true")
    work = planted.repository.folder
    clone = tmp_path / "clone"
    planted.repository.git("clone", "--quiet", "--bare", "--filter=blob:none", f"file://{work}", str(clone))
    bare = Repository(clone)
    planted.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{planted.trace}"\n')  # one that waits for nothing
    bare.git("config", "remote.origin.uploadpack", str(planted.program))
    bare.git("config", "protocol.file.allow", "always")
    assert run(["diff", "--git", "HEAD~1..HEAD"]) == 1
    os.chdir(clone)
    capsys.readouterr()
    assert run(["diff", "--git", "HEAD~1..HEAD"]) == 2
    assert "this clone is partial, and nothing is fetched" in capsys.readouterr().err
    assert run(["diff", "HEAD~1:ds.json", "HEAD:ds.json"]) == 2
    assert not planted.trace.exists(), planted.trace.read_text()
    bare.git("show", "HEAD:ds.json", check=False)
    assert planted.trace.exists()


def test_a_filter_that_cannot_be_switched_off_is_refused(planted: Planted) -> None:
    planted.config("filter.a=b.clean")
    with pytest.raises(GitError, match=r"a program filter\.a=b\.clean, which cannot be switched off"):
        git(planted.repository.folder, "diff", "HEAD")
