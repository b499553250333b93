"""Copies to run in: everything is there, and nothing is written outside of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsmigrate.verify import shadow as module
from dsmigrate.verify.harness.links import detach
from dsmigrate.verify.shadow import COPIED_BYTES, lay_over, shadow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "data" / "images").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "train.py").write_text("print('hi')\n")
    (folder / "models" / "net.py").write_text("x = 1\n")
    (folder / "weights.bin").write_bytes(b"0" * (COPIED_BYTES + 1))
    (folder / "small.bin").write_bytes(b"1")
    (folder / "big.py").write_bytes(b"#" * (COPIED_BYTES + 1))
    (folder.parent / "neighbour").mkdir()
    (folder.parent / "neighbour" / "set.txt").write_text("data")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


def test_small_files_and_code_are_copied_and_large_ones_linked(project: Path, place: Path) -> None:
    copy = shadow(project, place)
    assert copy.name == "project"
    assert (copy / "train.py").read_text() == "print('hi')\n"
    for name in ("train.py", "models/net.py", "small.bin", "big.py"):
        assert not (copy / name).is_symlink(), name
    assert (copy / "weights.bin").is_symlink()
    assert not (copy / "models").is_symlink()
    assert (copy / ".git").is_symlink()


def test_what_lies_beside_the_project_is_there_as_before(project: Path, place: Path) -> None:
    copy = shadow(project, place)
    assert (copy / ".." / "neighbour" / "set.txt").read_text() == "data"


def test_crowded_folders_are_linked_whole(project: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CROWDED", 3)
    for index in range(5):
        (project / "data" / "images" / f"{index}.txt").write_text("x")
    copy = shadow(project, place)
    assert (copy / "data" / "images").is_symlink()
    assert not (copy / "data").is_symlink()


def test_a_budget_ends_the_walk(project: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES", 2)
    copy = shadow(project, place)
    assert (copy / "models").is_symlink()
    assert (copy / "models" / "net.py").read_text() == "x = 1\n"


def test_a_copy_inside_of_the_project_does_not_hold_itself(project: Path) -> None:
    copy = shadow(project, project / "tmp")
    assert not (copy / "tmp" / "project").exists()


def test_broken_links_and_pipes_are_passed_over(project: Path, place: Path) -> None:
    (project / "gone").symlink_to(project / "nowhere")
    os.mkfifo(project / "pipe")
    copy = shadow(project, place)
    assert not (copy / "gone").exists()
    assert not (copy / "pipe").exists()


def test_laying_over_replaces_files_and_keeps_the_rest(project: Path, place: Path, tmp_path: Path) -> None:
    copy = shadow(project, place)
    out = tmp_path / "out"
    (out / "models").mkdir(parents=True)
    (out / "train.py").write_text("converted\n")
    (out / "models" / "extra.py").write_text("y = 2\n")
    (out / "weights.bin").write_bytes(b"2")
    lay_over(out, copy)
    assert (copy / "train.py").read_text() == "converted\n"
    assert (copy / "models" / "net.py").is_file()
    assert (copy / "models" / "extra.py").is_file()
    assert (copy / "weights.bin").read_bytes() == b"2"
    assert (project / "weights.bin").stat().st_size == COPIED_BYTES + 1
    assert (project / "train.py").read_text() == "print('hi')\n"


def test_a_link_becomes_a_copy_before_it_is_written(project: Path, place: Path) -> None:
    copy = shadow(project, place)
    detach(str(copy / "weights.bin"), str(copy))
    assert not (copy / "weights.bin").is_symlink()
    assert (copy / "weights.bin").stat().st_size == COPIED_BYTES + 1


def test_links_outside_and_whole_folders_stay(project: Path, place: Path) -> None:
    copy = shadow(project, place)
    detach(str(copy / ".git"), str(copy))
    detach(str(copy / ".." / "neighbour"), str(copy))
    detach(3, str(copy))
    assert (copy / ".git").is_symlink()


@pytest.mark.parametrize(
    "writing",
    [
        "open('weights.bin', 'wb').write(b'new')",
        "open('weights.bin', 'r+b').write(b'new')",
        "import os; os.write(os.open('weights.bin', os.O_WRONLY), b'new')",
        "from pathlib import Path; Path('weights.bin').write_bytes(b'new')",
        "import shutil; shutil.copyfile('small.bin', 'weights.bin')",
    ],
)
def test_whatever_writes_the_original_stays(project: Path, place: Path, writing: str) -> None:
    copy = shadow(project, place)
    script = f"from dsmigrate.verify.harness.links import protect; protect({str(copy)!r}); {writing}"
    server = str(Path(module.__file__).parents[2])
    subprocess.run([sys.executable, "-c", script], cwd=copy, env={**os.environ, "PYTHONPATH": server}, check=True)
    assert (project / "weights.bin").read_bytes() == b"0" * (COPIED_BYTES + 1)
    assert (copy / "weights.bin").read_bytes() != b"0" * (COPIED_BYTES + 1)


def test_reading_keeps_the_link(project: Path, place: Path) -> None:
    copy = shadow(project, place)
    server = str(Path(module.__file__).parents[2])
    script = (
        f"from dsmigrate.verify.harness.links import protect; protect({str(copy)!r}); open('weights.bin', 'rb').read()"
    )
    subprocess.run([sys.executable, "-c", script], cwd=copy, env={**os.environ, "PYTHONPATH": server}, check=True)
    assert (copy / "weights.bin").is_symlink()
