from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.evidence import consumer_for, frameworks_for, pin_in, pin_rank, release_for
from dsmigrate.document import parse
from dsmigrate.knowledge import knowledge


@pytest.mark.parametrize(
    ("file", "text", "release"),
    [
        ("requirements.txt", "torch\ndeepspeed==0.14.5  # pinned\n", "0.14.5"),
        ("requirements-train.txt", "deepspeed[autotuning]==0.16.4\n", "0.16.4"),
        ("pyproject.toml", '[project]\ndependencies = [\n  "deepspeed==0.15.1",\n]\n', "0.15.1"),
        ("uv.lock", '[[package]]\nname = "deepspeed"\nversion = "0.18.2"\n', "0.18.2"),
        ("poetry.lock", '[[package]]\nname = "deepspeed"\nversion = "0.13.1"\ndescription = ""\n', "0.13.1"),
        ("Pipfile.lock", '{"default": {"deepspeed": {"hashes": [], "version": "==0.12.3"}}}', "0.12.3"),
        ("environment.yml", "dependencies:\n  - pip:\n    - deepspeed==0.10.0\n", "0.10.0"),
        ("environment.yaml", "dependencies:\n  - deepspeed=0.14.4\n", "0.14.4"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ndeepspeed = "0.15.4"\n', "0.15.4"),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    deepspeed==0.12.6\n", "0.12.6"),
        ("setup.py", 'setup(install_requires=["torch", "deepspeed==0.9.5"])\n', "0.9.5"),
        ("Dockerfile", "FROM nvcr.io/nvidia/pytorch\nRUN pip install torch deepspeed==0.16.9 && ls\n", "0.16.9"),
        ("train.Dockerfile", 'RUN pip install "deepspeed==0.17.0"\n', "0.17.0"),
    ],
)
def test_a_pin_says_the_release(tmp_path: Path, file: str, text: str, release: str) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    inner = tmp_path / "configs" / "ds"
    inner.mkdir(parents=True)
    guess = release_for(inner)
    assert (guess.value, guess.why) == (release, f"pinned in {file}")


@pytest.mark.parametrize(
    "text",
    [
        "deepspeed>=0.14\n",
        "deepspeed-kernels==0.1\n",
        "mydeepspeed==0.14.0\n",
        "# deepspeed==0.14.0\n",
        "my-deepspeed==0.14.0\n",
    ],
)
def test_what_pins_nothing_known_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text(text, encoding="utf-8")
    assert release_for(tmp_path).why in {"installed here", "the newest known"}


def test_an_older_pin_leads_to_the_oldest_known_release(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("deepspeed==0.6.5\n", encoding="utf-8")
    guess = release_for(tmp_path)
    assert (guess.value, guess.why) == ("0.9.0", "the oldest known: requirements.txt pins 0.6.5")


def test_without_a_pin_it_is_what_is_installed_or_the_newest(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    guess = release_for(tmp_path)
    assert guess.why in {"installed here", "the newest known"}
    if guess.why == "the newest known":
        assert guess.value == knowledge().version


def test_pins_of_a_folder_that_is_not_on_disk() -> None:
    assert pin_rank("uv.lock") == 0
    assert pin_rank("requirements/train.txt") is not None
    assert pin_rank("a/requirements.txt") is None
    assert pin_rank("train.py") is None
    assert pin_in("requirements.txt", "deepspeed==0.14.5\n") == "0.14.5"
    assert not pin_in("train.py", "deepspeed==0.14.5\n")
    assert not pin_in("requirements.txt", "deepspeed==0.8.0\n")


AUTO = '{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}'


@pytest.mark.parametrize(
    ("text", "script", "consumer"),
    [
        ('{"train_batch_size": 8}', "from transformers import Trainer\n", "deepspeed"),
        (AUTO, "", "transformers"),
        (AUTO, "from transformers import Trainer\n", "transformers"),
        (AUTO, "from accelerate import Accelerator\n", "accelerate"),
        (AUTO, "import accelerate, os\nfrom transformers import AutoModel\n", "transformers"),
        ('{"optimizer": {"params": {"betas": ["auto"]}}, "steps_per_print": "automatic"}', "", "deepspeed"),
    ],
)
def test_auto_and_scripts_say_who_reads_it(tmp_path: Path, text: str, script: str, consumer: str) -> None:
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    assert consumer_for(parse(text), tmp_path).value == consumer


def test_pins_say_the_releases_of_frameworks_too(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "transformers[torch]==4.44.2\ntransformers-stream==1.0.0\n", encoding="utf-8"
    )
    inner = tmp_path / "configs"
    inner.mkdir()
    (inner / "uv.lock").write_text('[[package]]\nname = "accelerate"\nversion = "0.30.1"\n', encoding="utf-8")
    assert frameworks_for(inner, "0.14.0") == {"transformers": "4.44.2", "accelerate": "0.30.1"}
    assert frameworks_for(None, "0.14.0") == {}


def test_what_is_installed_here_is_not_what_another_release_of_deepspeed_is_used_with(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert frameworks_for(tmp_path, "0.15.0") == {}
