"""Parts of the harness that need no torch."""

from __future__ import annotations

import random
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dsmigrate.verify.harness import place
from dsmigrate.verify.harness.determinism import seed_everything
from dsmigrate.verify.harness.imports import AfterImport


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
