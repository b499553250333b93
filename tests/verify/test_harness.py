"""Parts of the harness that need no torch."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dsmigrate.verify.harness import place
from dsmigrate.verify.harness.determinism import seed_everything
from dsmigrate.verify.harness.imports import AfterImport
from dsmigrate.verify.harness.links import is_full


def test_the_rank_is_that_of_torchrun_or_of_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)
    assert (place.rank(), place.local_rank()) == (0, 0)
    monkeypatch.setenv("SLURM_PROCID", "5")
    monkeypatch.setenv("SLURM_LOCALID", "1")
    assert (place.rank(), place.local_rank()) == (5, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert (place.rank(), place.local_rank()) == (2, 0)


def test_a_module_that_is_there_already_is_patched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "there_already", ModuleType("there_already"))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    seen: list[str] = []
    AfterImport({"there_already": lambda module: seen.append(module.__name__), "not_there": seen.append}).install()
    assert seen == ["there_already"]


def test_every_rank_is_seeded_apart_and_alike_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    torch = SimpleNamespace(manual_seed=given.append)
    monkeypatch.setenv("RANK", "1")
    seed_everything(torch, 8)
    seed_everything(torch, 8, 2)
    assert given == [9, 10]
    drawn = random.getstate()
    random.seed(10)
    assert drawn == random.getstate()


def test_what_a_run_reads_of_the_checkpoints_before_it_is_noted_once(tmp_path: Path) -> None:
    work, trace = tmp_path / "work", tmp_path / "trace"
    (work / "step4").mkdir(parents=True)
    trace.mkdir()
    for name in ("last.pt", "copy.pt", "data.csv", "step4/states.bin"):
        (work / name).touch()
    script = f"""
import sys
sys.path.insert(0, {str(Path(place.__file__).parents[3])!r})
from dsmigrate.verify.harness.job import Job
from dsmigrate.verify.harness.reads import note_reads
saved = ({str(work / "last.pt")!r}, {str(work / "step4")!r})
note_reads(Job(trace={str(trace)!r}, work={str(work)!r}, origin="", steps=1, processes=1, port=1, saved=saved))
for name in ("copy.pt", "data.csv", "step4/states.bin", "copy.pt"):
    open(name).close()
open("last.pt", "w").close()
"""
    subprocess.run([sys.executable, "-c", script], cwd=work, check=True)
    (noted,) = trace.iterdir()
    assert noted.read_text().splitlines() == [str(work / "copy.pt"), str(work / "step4" / "states.bin")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_disk_without_room_is_told_from_one_with_it(tmp_path: Path) -> None:
    assert is_full("/dev/full")
    assert not is_full(tmp_path / "last.pt")
    assert not is_full(tmp_path / "nowhere" / "last.pt")
    assert not is_full(3)
