from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff.changed import Status, changed
from dsmigrate.diff.driver import DriverError, drive
from dsmigrate.diff.git import GitError, at_revision, committed, has_commit, is_revision
from dsmigrate.diff.textconv import normalised
from dsmigrate.settings.diff import DiffSettings
from tests.diff.repository import DSMIGRATE, NOWHERE, ROOT, Repository

Captured = pytest.CaptureFixture[str]
STAGE_2 = '{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n'
STAGE_3 = STAGE_2.replace("2\n  }", "3\n  }")
RESPELLED = '{"zero_optimization": {"stage": 2}, "train_batch_size": 8}\n'
OTHER = '{"name": "web", "version": "1.0.0"}\n'


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    made = Repository.make(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    return made


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("HEAD:ds.json", True),
        ("HEAD~1:configs/ds.json", True),
        (":configs/ds.json", True),
        ("ds.json", False),
        ("C:/configs/ds.json", False),
        ("C:\\configs\\ds.json", False),
        ("HEAD:", False),
    ],
)
def test_what_means_a_file_in_a_revision(text: str, means: bool) -> None:
    assert is_revision(text) is means


def test_a_file_whose_name_holds_a_colon_is_a_file(repository: Repository) -> None:
    repository.put({"a:b.json": STAGE_2})
    assert not is_revision("a:b.json")


def test_an_option_is_no_revision(repository: Repository) -> None:
    with pytest.raises(GitError, match=r"--output=x is no revision"):
        at_revision("--output=x:ds.json", repository.folder)


def test_both_sides_may_be_revisions_and_one_may_be_staged(repository: Repository, capsys: Captured) -> None:
    repository.commit({"configs/ds.json": STAGE_2})
    repository.commit({"configs/ds.json": STAGE_3})
    assert run(["diff", "HEAD~1:configs/ds.json", "HEAD:configs/ds.json"]) == 1
    assert "zero_optimization.stage: 2 → 3" in capsys.readouterr().out
    repository.put({"configs/ds.json": STAGE_2})
    repository.git("add", "--all")
    assert run(["diff", "HEAD:configs/ds.json", ":configs/ds.json"]) == 1
    assert "zero_optimization.stage: 3 → 2" in capsys.readouterr().out
    assert run(["diff", ":configs/ds.json", "configs/ds.json"]) == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere:ds.json", "invalid object name 'nowhere'"),
        ("HEAD:none.json", "path 'none.json' does not exist in 'HEAD'"),
    ],
)
def test_a_side_that_git_does_not_know_is_exit_code_2(
    repository: Repository, capsys: Captured, name: str, says: str
) -> None:
    repository.commit({"ds.json": STAGE_2})
    assert run(["diff", name, "ds.json"]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_path_below_the_current_folder_is_hinted_at(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    repository.commit({"configs/ds.json": STAGE_2})
    monkeypatch.chdir(repository.folder / "configs")
    assert run(["diff", "HEAD:ds.json", "ds.json"]) == 2
    assert "Did you mean 'HEAD:configs/ds.json' aka 'HEAD:./ds.json'?" in " ".join(capsys.readouterr().err.split())
    assert run(["diff", "HEAD:./ds.json", "ds.json"]) == 0


def test_a_committed_file_is_found_from_another_folder_within_a_hook(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"configs/ds.json": STAGE_2})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", ".git")
    assert committed(repository.folder / "configs" / "ds.json").data == STAGE_2.encode()


def branches(repository: Repository) -> None:
    """Make ``main`` and ``feature``: every kind of change on the one, and another one on the other meanwhile."""
    repository.commit(
        {
            "ds_config.json": STAGE_2,
            "same.json": STAGE_2,
            "gone/zero2.json": STAGE_2,
            "old_name.json": STAGE_2 + "\n" * 9,
            "package.json": OTHER,
            "notes.txt": "2",
            "meanwhile.json": STAGE_2,
        }
    )
    repository.git("checkout", "--quiet", "-b", "feature")
    renamed = {"old_name.json": None, "configs/new name é.json": STAGE_3 + "\n" * 9}
    repository.commit(
        {
            "ds_config.json": STAGE_3,
            "same.json": RESPELLED,
            "gone/zero2.json": None,
            "added.hjson": "{\n  # another one\n  train_batch_size: 16\n  bf16: {enabled: true}\n}\n",
            "package.json": OTHER.replace("1.0", "1.1"),
            "notes.txt": "3",
            **renamed,
        }
    )
    repository.git("checkout", "--quiet", "main")
    repository.commit({"meanwhile.json": STAGE_3})
    repository.git("checkout", "--quiet", "feature")


def test_a_range_has_each_config_that_it_changes_and_nothing_else(repository: Repository) -> None:
    branches(repository)
    found = changed("main...feature", repository.folder)
    assert [(entry.status, entry.old and entry.old.name, entry.new and entry.new.name) for entry in found] == [
        (Status.ADDED, None, "added.hjson"),
        (Status.RENAMED, "old_name.json", "configs/new name é.json"),
        (Status.CHANGED, "ds_config.json", "ds_config.json"),
        (Status.DELETED, "gone/zero2.json", None),
        (Status.CHANGED, "same.json", "same.json"),
    ]
    assert "meanwhile.json" in {entry.path for entry in changed("main..feature", repository.folder)}


def test_a_range_is_told_config_by_config(repository: Repository, capsys: Captured) -> None:
    branches(repository)
    assert run(["diff", "--git", "main...feature"]) == 1
    out = capsys.readouterr().out
    assert "added added.hjson\nZeRO off · bf16 · batch 16\n" in out
    assert "renamed old_name.json → configs/new name é.json\n" in out
    assert "deleted gone/zero2.json\nZeRO-2" in out
    assert "changed same.json\nNo semantic change\n" in out
    assert out.endswith("5 DeepSpeed configs: 1 added, 1 deleted, 2 changed, 1 renamed\n")


def test_a_range_can_be_limited_to_paths_from_any_folder(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    branches(repository)
    assert run(["diff", "--git", "main...feature", "same.json"]) == 0
    assert capsys.readouterr().out.endswith("1 DeepSpeed config: 1 changed\n")
    monkeypatch.chdir(repository.folder / "configs")
    assert run(["diff", "--git", "main...feature", "."]) == 1
    assert capsys.readouterr().out.endswith("1 DeepSpeed config: 1 renamed\n")
    assert len(changed("main...feature", Path())) == 5


def test_one_revision_is_compared_with_the_working_tree(repository: Repository) -> None:
    repository.commit({"ds_config.json": STAGE_2})
    assert changed("HEAD", repository.folder) == ()
    repository.put({"ds_config.json": STAGE_3})
    (entry,) = changed("HEAD", repository.folder)
    assert entry.new is not None
    assert entry.new.data == STAGE_3.encode()


def test_a_link_and_a_submodule_are_no_configs(repository: Repository) -> None:
    repository.commit({"ds_config.json": STAGE_2})
    (repository.folder / "link_ds.json").symlink_to("ds_config.json")
    head = repository.git("rev-parse", "HEAD").stdout.strip()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},ds_module.json")
    repository.git("add", "link_ds.json")
    repository.git("commit", "--quiet", "-m", "links")
    assert changed("HEAD~1..HEAD", repository.folder) == ()


def test_settings_of_git_and_filters_of_the_repository_change_nothing(repository: Repository) -> None:
    branches(repository)
    before = changed("main...feature", repository.folder)
    for name, value in (
        ("diff.renames", "false"),
        ("diff.noprefix", "true"),
        ("diff.relative", "true"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("diff.external", "false"),
    ):
        repository.git("config", name, value)
    assert changed("main...feature", repository.folder) == before


def test_a_config_that_becomes_unreadable_is_exit_code_2(repository: Repository, capsys: Captured) -> None:
    repository.commit({"ds_config.json": STAGE_2})
    (repository.folder / "ds_config.json").write_bytes(b"\xff\xfe\xff\x00" * 9)
    repository.commit({})
    assert run(["diff", "--git", "HEAD~1..HEAD"]) == 2
    assert "changed ds_config.json" in capsys.readouterr().out


def test_the_json_of_a_range_follows_its_schema(repository: Repository, capsys: Captured) -> None:
    branches(repository)
    assert run(["diff", "--git", "main...feature", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "schemas/output/diff-range.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(document)
    assert document["range"] == "main...feature"
    assert document["summary"] == {
        "files": 5,
        "statuses": {"added": 1, "deleted": 1, "changed": 2, "renamed": 1, "copied": 0, "unchanged": 0},
        "same": 1,
        "errors": 0,
    }
    assert document["files"][1]["diff"]["changes"][0]["path"] == "zero_optimization.stage"


def test_a_bare_clone_gives_the_same(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branches(repository)
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    monkeypatch.chdir(bare)
    assert len(changed("main...feature", bare)) == 5
    assert run(["diff", "--git", "main...feature", "--format", "json"]) == 1
    assert run(["diff", "main:ds_config.json", "feature:ds_config.json"]) == 1
    with pytest.raises(GitError, match=r"this repository is bare; write BASE\.\.\.HEAD"):
        changed("feature", bare)


def test_a_shallow_clone_says_what_is_missing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    first = repository.commit({"ds_config.json": STAGE_2})
    repository.commit({"ds_config.json": STAGE_3})
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), str(shallow))
    monkeypatch.chdir(shallow)
    for arguments in (
        ["--git", f"{first}...HEAD"],
        ["--git", "HEAD~1..HEAD"],
        ["HEAD~1:ds_config.json", "ds_config.json"],
    ):
        assert run(["diff", *arguments]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "this clone is shallow: `git fetch --unshallow` gets the rest" in said
    assert not has_commit(shallow, first)


def test_revisions_that_never_parted_have_no_base(repository: Repository) -> None:
    repository.commit({"ds_config.json": STAGE_2})
    repository.git("checkout", "--quiet", "--orphan", "apart")
    repository.commit({"ds_config.json": STAGE_3})
    with pytest.raises(GitError, match="no merge base"):
        changed("main...apart", repository.folder)


@pytest.mark.parametrize("text", ["--output=x", "...", ".."])
def test_what_is_no_range_is_refused(repository: Repository, text: str) -> None:
    with pytest.raises(GitError, match="is no range of revisions; write BASE"):
        changed(text, repository.folder)


def test_outside_of_a_repository_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(GitError, match="not a git repository"):
        changed("HEAD~1..HEAD", tmp_path)


def with_driver(repository: Repository, *, pager: bool = True) -> None:
    repository.put({".gitattributes": "*.json diff=deepspeed\n*.hjson diff=deepspeed\n"})
    around = "GIT_PAGER_IN_USE=1 NO_COLOR=1 " if pager else ""
    repository.git("config", "diff.deepspeed.command", f"{around}{DSMIGRATE} diff --git-driver")


def test_git_diff_shows_what_a_change_does_and_the_lines_of_other_files(repository: Repository) -> None:
    with_driver(repository)
    branches(repository)
    out = repository.git("diff", "-M", "main...feature").stdout
    assert "changed ds_config.json\n" in out
    assert "  zero_optimization.stage: 2 → 3\n" in out
    assert "added added.hjson\n" in out
    assert "deleted gone/zero2.json\n" in out
    assert "renamed old_name.json → configs/new name é.json\n" in out
    assert '--- a/package.json\n+++ b/package.json\n@@ -1 +1 @@\n-{"name": "web", "version": "1.0.0"}\n' in out
    assert "-2\n\\ No newline at end of file\n+3\n" in out


def test_what_git_diff_writes_to_a_file_is_a_patch(repository: Repository) -> None:
    with_driver(repository, pager=False)
    branches(repository)
    patch = repository.folder / "x.patch"
    patch.write_bytes(repository.git("diff", "-M", "main", "feature").stdout.encode())
    assert "rename to" in patch.read_text(encoding="utf-8")
    repository.git("checkout", "--quiet", "main")
    repository.git("apply", "--index", "x.patch")
    assert repository.git("diff", "--no-ext-diff", "--cached", "feature").stdout == ""


def test_git_log_and_show_take_the_driver_when_asked(repository: Repository) -> None:
    with_driver(repository)
    branches(repository)
    assert "zero_optimization.stage: 2 → 3" in repository.git("show", "--ext-diff", "feature").stdout


def test_the_driver_survives_merge_conflicts_and_broken_files(repository: Repository) -> None:
    with_driver(repository)
    repository.commit({"ds_config.json": STAGE_2})
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit({"ds_config.json": STAGE_3})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"ds_config.json": STAGE_2.replace("2\n  }", "1\n  }")})
    assert repository.git("merge", "side", check=False).returncode == 1
    assert "changed ds_config.json\n" in repository.git("diff", "--ours").stdout
    repository.git("merge", "--abort")
    (repository.folder / "ds_config.json").write_bytes(b"\xff\x00\xff")
    assert "Binary files of ds_config.json differ" in repository.git("diff").stdout


def test_an_unmerged_path_comes_alone() -> None:
    assert drive(["ds_config.json"], DiffSettings()).text == "* Unmerged path ds_config.json\n"


def test_arguments_that_are_not_gits_are_exit_code_2(capsys: Captured) -> None:
    with pytest.raises(DriverError):
        drive(["a.json", "b.json"], DiffSettings())
    assert run(["diff", "--git-driver", "a.json", "b.json"]) == 2
    assert 'set diff.deepspeed.command to "dsmigrate diff --git-driver"' in " ".join(capsys.readouterr().err.split())


def test_difftool_shows_each_changed_config(repository: Repository) -> None:
    branches(repository)
    tool = f'{DSMIGRATE} diff --git-driver "$MERGED" "$LOCAL" . . "$REMOTE" . .'
    repository.git("config", "difftool.dsmigrate.cmd", tool)
    out = repository.git(
        "difftool", "--no-prompt", "--tool=dsmigrate", "main...feature", "--", "*.json", "*.hjson"
    ).stdout
    assert "changed ds_config.json\n" in out
    assert "added added.hjson\n" in out


def test_textconv_makes_order_spelling_and_comments_vanish_from_git_diff(repository: Repository) -> None:
    repository.put({".gitattributes": "*.json diff=deepspeed\n"})
    repository.git("config", "diff.deepspeed.textconv", f"{DSMIGRATE} diff --textconv")
    repository.commit({"ds_config.json": STAGE_2, "package.json": OTHER})
    repository.commit({"ds_config.json": RESPELLED.replace("8", "8.0"), "package.json": OTHER.replace("web", "wob")})
    out = repository.git("diff", "HEAD~1..HEAD").stdout
    assert "ds_config.json" not in out
    assert '+{"name": "wob", "version": "1.0.0"}' in out
    repository.commit({"ds_config.json": STAGE_3})
    assert (
        "-zero_optimization.stage = 2\n+zero_optimization.stage = 3\n" in repository.git("diff", "HEAD~1..HEAD").stdout
    )


def test_normalised_text_has_one_name_for_a_key_and_the_value_that_is_read() -> None:
    text = b'{"bfloat16": {"enabled": true}, "zero_optimization": {"reduce_bucket_size": 5e8, "stage": 2}, "mine": [1]}'
    assert normalised(text) == (
        b"bf16.enabled = true\nmine = [1]  (unknown)\n"
        b"zero_optimization.reduce_bucket_size = 500000000\nzero_optimization.stage = 2\n"
    )


@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"{", b'{"name": 1}', b'{"zero_optimization": {"stage": '])
def test_normalised_text_of_anything_else_is_what_it_was(data: bytes) -> None:
    assert normalised(data) == data


def test_the_pager_gets_colours_and_a_pipe_none(repository: Repository) -> None:
    old, new = repository.folder / "old", repository.folder / "new"
    old.write_text(STAGE_2, encoding="utf-8")
    new.write_text(STAGE_3, encoding="utf-8")
    arguments = ["diff", "--git-driver", "ds.json", str(old), "1", "100644", str(new), "2", "100644"]
    assert "\x1b[" in repository.dsmigrate(*arguments, GIT_PAGER_IN_USE="1", TERM="xterm").stdout
    assert "\x1b[" not in repository.dsmigrate(*arguments).stdout
    assert "\x1b[" not in repository.dsmigrate(*arguments, GIT_PAGER_IN_USE="1", NO_COLOR="1").stdout


def test_a_push_is_stopped_by_the_hook_of_the_documentation(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"ds_config.json": STAGE_2})
    there = tmp_path / "there.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(there)], check=True)
    repository.git("remote", "add", "origin", str(there))
    repository.git("push", "--quiet", "origin", "main")
    page = (ROOT / "docs/diff-in-git.md").read_text(encoding="utf-8")
    hook = page.partition("<!-- pre-push -->\n```sh\n")[2].partition("```")[0].replace("dsmigrate", DSMIGRATE)
    path = repository.folder / ".git/hooks/pre-push"
    path.parent.mkdir(exist_ok=True)
    path.write_text(hook, encoding="utf-8")
    path.chmod(0o755)
    repository.commit({"ds_config.json": RESPELLED})
    assert repository.git("push", "origin", "main", check=False).returncode == 0
    repository.commit(
        {"ds_config.json": RESPELLED.replace("8}", '8, "fp16": {"enabled": true}, "amp": {"enabled": true}}')}
    )
    stopped = repository.git("push", "origin", "main", check=False)
    assert stopped.returncode == 1
    assert "changed ds_config.json" in stopped.stdout + stopped.stderr
