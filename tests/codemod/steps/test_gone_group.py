"""A resume checkpoint behind ``dist.destroy_process_group()``: all ranks save together, which needs the group."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

SCRIPT = """
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def cleanup():
    if dist.is_initialized():
        dist.destroy_process_group()


def save(model, optimizer):
    if dist.get_rank() == 0:
        torch.save({{"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}}, "last.pt")


def main(args, rank):
    dist.init_process_group("nccl")
    model = DDP(nn.Linear(8, 4).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in load():
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{end}


main(get_args(), get_rank())
"""
SAVE = 'torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")'
GUARDED = f"if rank == 0:\n    {SAVE}"


def converted(end: str) -> Migrated:
    return migrate(SCRIPT.format(end="".join(f"    {line}\n" for line in end.splitlines()).rstrip("\n")))


@pytest.mark.parametrize(
    "end",
    [
        f"dist.destroy_process_group()\n{GUARDED}",
        f"cleanup()\n{GUARDED}",
        f"if args.distributed:\n    dist.destroy_process_group()\n{GUARDED}",
        "cleanup()\nsave(model, optimizer)",
        f"try:\n    cleanup()\nfinally:\n    {SAVE}",
    ],
)
def test_a_save_behind_the_end_of_the_group_is_left_to_the_person(end: str) -> None:
    change = converted(end).said("MG621", "torch.save(", Kind.TODO)
    assert "destroy_process_group" in change.message


@pytest.mark.parametrize(
    "end",
    [
        f"{GUARDED}\ndist.destroy_process_group()",
        "save(model, optimizer)\ncleanup()",
        f"if args.test:\n    cleanup()\n    return\n{GUARDED}",
        f"if args.test:\n    cleanup()\n    sys.exit(0)\n{GUARDED}",
        f"if args.test:\n    cleanup()\nelse:\n    {SAVE}",
        f'cleanup()\ndist.init_process_group("nccl")\n{GUARDED}',
    ],
)
def test_a_save_with_the_group_still_there_needs_nobody(end: str) -> None:
    assert not any(change.kind is Kind.TODO for change in converted(end).changes if change.code == "MG621")
