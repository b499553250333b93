"""How the original started its processes, as launch lines need to know it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Options, Start
from tests.support.migrating import migrate_source

SCRIPT = """
import argparse
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=4)
parser.add_argument("--all", type=int, default=torch.cuda.device_count())
parser.add_argument("--distributed", action="store_true")
{options}


def worker(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    model = DDP(torch.nn.Linear(4, 4).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()


def main():
    args = parser.parse_args()
{start}


if __name__ == "__main__":
    main()
"""


def start(text: str, options: str = "") -> Start:
    lines = "\n".join(f"    {line}" for line in text.split("\n"))
    source = SCRIPT.format(start=lines, options=options)
    found = migrate_source(source.encode(), path="train.py", options=Options()).start
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "count", "default"),
    [
        ("mp.spawn(worker, args=(2,), nprocs=2)", "2", ""),
        ("mp.spawn(worker, args=(1,))", "1", ""),
        ("n = torch.cuda.device_count()\nmp.spawn(worker, args=(n,), nprocs=n)", "gpus", ""),
        ("mp.spawn(worker, args=(args.gpus,), nprocs=args.gpus)", "--gpus", "4"),
        ("mp.spawn(worker, args=(args.all,), nprocs=args.all)", "--all", "gpus"),
        ("n = int(args.gpus)\nmp.spawn(worker, args=(n,), nprocs=n)", "--gpus", "4"),
        ("n = len(os.environ)\nmp.spawn(worker, args=(n,), nprocs=n)", "", ""),
        ("n = 2\nn += 1\nmp.spawn(worker, args=(n,), nprocs=n)", "3", ""),
        ("args.gpus = 3\nmp.spawn(worker, args=(args.gpus,), nprocs=args.gpus)", "3", ""),
        ("args.gpus += 1\nmp.spawn(worker, args=(args.gpus,), nprocs=args.gpus)", "", ""),
    ],
)
def test_the_number_of_processes_is_known_only_where_it_is_one_thing(text: str, count: str, default: str) -> None:
    assert start(text) == Start(spawned=True, count=count, default=default, own=True)


def test_a_switch_and_a_test_of_the_count_are_understood() -> None:
    spawn = "mp.spawn(worker, args=(args.gpus,), nprocs=args.gpus)"
    assert start(f"if args.distributed:\n    {spawn}\nelse:\n    worker(0, 1)").switches == ("--distributed",)
    assert not start(f"if args.gpus > 1:\n    {spawn}\nelse:\n    worker(0, 1)").unsure


def test_what_else_decides_makes_it_unsure() -> None:
    assert start("if 'X' in os.environ:\n    mp.spawn(worker, args=(2,), nprocs=2)").unsure
    assert start("if args.gpus > 2:\n    mp.spawn(worker, args=(args.gpus,), nprocs=args.gpus)").unsure


def test_scripts_that_did_not_spawn_say_where_their_ranks_come_from() -> None:
    local = 'parser.add_argument("--local_rank", type=int, default=0)'
    assert start("worker(args.local_rank, 2)", local) == Start(local_rank=True)
    assert start('worker(int(os.environ["SLURM_PROCID"]), 2)') == Start(slurm=True)
    assert start('worker(int(os.environ["OMPI_COMM_WORLD_RANK"]), 2)') == Start(mpi=True)
