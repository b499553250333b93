"""Several trainings in one process: what stays of one when the next begins."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

SCRIPT = """
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def cleanup():
    dist.destroy_process_group()


def train(fold, loader, epochs):
    {first}
    model = DDP(nn.Linear(8, 4).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            loss = model(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    {last}


def main(loader):
    {start}
    {runs}
    {end}


if __name__ == "__main__":
    main([])
"""
INIT = 'dist.init_process_group("nccl")'
FOLDS = "for fold in range(5):\n        train(fold, loader, 2)"


def trained(*, runs: str = FOLDS, inside: bool = False, stage: int = 2, last: str = "cleanup()") -> Migrated:
    texts: dict[str, Any] = {"first": INIT, "last": last, "start": "pass", "end": "pass"}
    if not inside:
        texts = {"first": "pass", "last": "pass", "start": INIT, "end": last}
    return migrate(SCRIPT.format(runs=runs, **texts), zero_stage=stage)


@pytest.mark.parametrize(
    ("stage", "said"), [(1, "model.destroy()"), (2, "model.destroy()"), (3, "a process of its own")]
)
def test_the_engine_before_stays_in_memory(stage: int, said: str) -> None:
    migrated = trained(stage=stage)
    assert said in migrated.said("MG712", "for fold in range(5):", Kind.KEPT).message
    assert not [c for c in migrated.changes if c.code == "MG712" and c.kind is Kind.TODO]


@pytest.mark.parametrize("last", ["cleanup()", "dist.destroy_process_group()"])
def test_a_process_group_for_each_training_is_marked(last: str) -> None:
    trained(inside=True, last=last).said("MG712", "dist.destroy_process_group()", Kind.TODO)


def test_one_training_has_one_engine() -> None:
    trained(runs="train(0, loader, 2)").silent("MG712")


def test_at_stage_0_the_engine_goes_with_its_name() -> None:
    trained(stage=0, inside=True).silent("MG712")
