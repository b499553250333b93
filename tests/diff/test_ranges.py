"""Ranges of commits that move the DeepSpeed release beside the configs, or instead of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff.changed import Status
from dsmigrate.diff.git import GitError
from dsmigrate.diff.ranges import compare_range
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings
from tests.diff.repository import NOWHERE, ROOT, Repository

Captured = pytest.CaptureFixture[str]
PLAIN = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n'
CLIPS = '{"train_batch_size": 8, "gradient_clipping": 0.5, "zero_optimization": {"stage": 2}}\n'
SETTINGS = DiffSettings()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    made = Repository.make(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    return made


def releases(repository: Repository, revisions: str = "HEAD~1..HEAD") -> dict[str, tuple[str, str]]:
    """Return the releases of both sides of each config."""
    found = {}
    for outcome in compare_range(revisions, repository.folder, SETTINGS):
        assert outcome.compared is not None
        found[outcome.entry.path] = outcome.compared.old.known.version, outcome.compared.new.known.version
    return found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", "torch\ndeepspeed=={}\n"),
        ("requirements/train.txt", "deepspeed[autotuning]=={}\n"),
        ("pyproject.toml", '[project]\ndependencies = ["deepspeed=={}"]\n'),
        ("environment.yml", "dependencies:\n  - pip:\n    - deepspeed=={}\n"),
        ("setup.cfg", "[options]\ninstall_requires =\n    deepspeed=={}\n"),
        ("Dockerfile", "RUN pip install deepspeed=={}\n"),
        ("poetry.lock", '[[package]]\nname = "deepspeed"\nversion = "{}"\n'),
    ],
)
def test_each_side_is_of_the_release_that_its_commit_pins(repository: Repository, file: str, text: str) -> None:
    repository.commit({"configs/ds.json": PLAIN, file: text.format("0.16.4")})
    repository.commit({"configs/ds.json": CLIPS, file: text.format("0.19.8")})
    outcome = compare_range("HEAD~1..HEAD", repository.folder, SETTINGS)[0]
    assert outcome.entry.status is Status.CHANGED
    assert outcome.compared is not None
    assert (outcome.compared.old.known.version, outcome.compared.new.known.version) == ("0.16.4", "0.19.8")
    assert outcome.compared.why_version == f"pinned in {file}"
    messages = [said.message for said in outcome.compared.result.explained if said.code == "DF301"]
    assert messages == ["Gradients are clipped to the norm 0.5; previously they were not"]


def test_the_report_says_both_releases(repository: Repository, capsys: Captured) -> None:
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.16.4\n"})
    repository.commit({"ds.json": CLIPS, "requirements.txt": "deepspeed==0.19.8\n"})
    assert run(["diff", "--git", "HEAD~1..HEAD"]) == 1
    assert "DeepSpeed 0.16.4 → 0.19.8, pinned in requirements.txt; read by" in capsys.readouterr().out
    run(["diff", "--git", "HEAD~1..HEAD", "--format", "markdown"])
    assert "<sub>DeepSpeed 0.16.4 → 0.19.8, pinned in requirements.txt, read by plain" in capsys.readouterr().out


def test_a_config_that_stays_is_told_where_its_release_moves(repository: Repository, capsys: Captured) -> None:
    files: dict[str, str | None] = {
        "a/ds.json": PLAIN,
        "b/ds.json": PLAIN,
        "b/requirements.txt": "deepspeed==0.19.2\n",
        "web/package.json": '{"name": "web"}\n',
    }
    repository.commit(files | {"requirements.txt": "deepspeed==0.19.2\n"})
    repository.commit({"requirements.txt": "deepspeed==0.19.8\n"})
    assert releases(repository) == {"a/ds.json": ("0.19.2", "0.19.8")}
    assert run(["diff", "--git", "HEAD~1..HEAD"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("unchanged a/ds.json\nChanges training: gradients clipped to 1.0")
    assert out.endswith("1 DeepSpeed config: 1 unchanged\n")
    assert run(["diff", "--git", "HEAD~1..HEAD", "b"]) == 0
    capsys.readouterr()
    run(["diff", "--git", "HEAD~1..HEAD", "--format", "json"])
    schema = json.loads((ROOT / "schemas" / "output" / "diff-range.schema.json").read_bytes())
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema)
    assert [file["status"] for file in document["files"]] == ["unchanged"]


def test_a_move_that_does_nothing_to_a_config_leaves_it_out(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.19.7\n"})
    repository.commit({"requirements.txt": "deepspeed==0.19.8\n"})
    assert compare_range("HEAD~1..HEAD", repository.folder, SETTINGS) == ()


def test_the_pin_nearest_upward_counts_and_a_lock_before_a_requirement(repository: Repository) -> None:
    lock = '[[package]]\nname = "deepspeed"\nversion = "{}"\n'
    repository.commit(
        {
            "ds.json": PLAIN,
            "train/ds.json": PLAIN,
            "requirements.txt": "deepspeed==0.14.5\n",
            "uv.lock": lock.format("0.15.1"),
            "train/requirements.txt": "deepspeed==0.12.3\n",
        }
    )
    repository.commit(
        {
            "ds.json": CLIPS,
            "train/ds.json": CLIPS,
            "uv.lock": lock.format("0.16.4"),
            "train/requirements.txt": "deepspeed==0.13.1\n",
        }
    )
    assert releases(repository) == {"ds.json": ("0.15.1", "0.16.4"), "train/ds.json": ("0.12.3", "0.13.1")}


def test_a_pin_that_comes_is_told_beside_what_counts_without_one(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN})
    repository.commit({"ds.json": CLIPS, "requirements.txt": "deepspeed==0.16.4\n"})
    outcome = compare_range("HEAD~1..HEAD", repository.folder, SETTINGS)[0]
    assert outcome.compared is not None
    assert outcome.compared.new.known.version == "0.16.4"
    assert outcome.compared.why_version.endswith(", 0.16.4 pinned in requirements.txt")


def test_the_working_tree_is_an_end_as_well(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.16.4\n"})
    repository.put({"ds.json": CLIPS, "requirements.txt": "deepspeed==0.19.8\n"})
    assert releases(repository, "HEAD") == {"ds.json": ("0.16.4", "0.19.8")}


def test_a_range_of_branches_begins_where_they_parted(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.16.4\n"})
    repository.git("branch", "feature")
    repository.commit({"requirements.txt": "deepspeed==0.17.1\n"})
    repository.git("checkout", "--quiet", "feature")
    repository.commit({"ds.json": CLIPS, "requirements.txt": "deepspeed==0.19.8\n"})
    assert releases(repository, "main...feature") == {"ds.json": ("0.16.4", "0.19.8")}
    assert releases(repository, "main...") == {"ds.json": ("0.16.4", "0.19.8")}


def test_a_bare_clone_has_pins_too(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"configs/ds.json": PLAIN, "requirements.txt": "deepspeed==0.16.4\n"})
    repository.commit({"configs/ds.json": CLIPS, "requirements.txt": "deepspeed==0.19.8\n"})
    bare = tmp_path / "bare"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.folder), str(bare)], check=True)
    assert releases(Repository(bare)) == {"configs/ds.json": ("0.16.4", "0.19.8")}


def test_a_release_that_is_asked_for_wins(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.16.4\n"})
    repository.commit({"ds.json": CLIPS, "requirements.txt": "deepspeed==0.19.8\n"})
    asked = DiffSettings(check=CheckSettings(version="0.17.1"))
    outcome = compare_range("HEAD~1..HEAD", repository.folder, asked)[0]
    assert outcome.compared is not None
    assert outcome.compared.old.known.version == outcome.compared.new.known.version == "0.17.1"


def test_a_config_that_comes_is_of_the_release_of_its_commit(repository: Repository) -> None:
    repository.commit({"requirements.txt": "deepspeed==0.16.4\n"})
    repository.commit({"ds.json": PLAIN, "requirements.txt": "deepspeed==0.19.8\n"})
    assert [outcome.entry.status for outcome in compare_range("HEAD~1..HEAD", repository.folder, SETTINGS)] == [
        Status.ADDED
    ]


def test_what_git_does_not_know_is_an_error(repository: Repository) -> None:
    repository.commit({"ds.json": PLAIN})
    with pytest.raises(GitError):
        compare_range("nowhere..HEAD", repository.folder, SETTINGS)
