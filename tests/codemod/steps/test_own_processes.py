"""Processes of the training that the script starts by other means than ``mp.spawn`` are marked where it starts them."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

SCRIPT = """
    import functools
    import multiprocessing
    import os

    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.parallel import DistributedDataParallel as DDP

    from elsewhere import app, launch, runner


    def setup({parameters}):
        dist.init_process_group("gloo", rank={rank}, world_size=2)


    def train({parameters}):
        setup({parameters})
        model = DDP(torch.nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(8, 2, 4):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()


    def main():
        {start}


    if __name__ == "__main__":
        main()
    """


def started(start: str, parameters: str = "rank, size", rank: str = "rank") -> Migrated:
    return migrate(SCRIPT.format(start=start, parameters=parameters, rank=rank))


@pytest.mark.parametrize(
    "start",
    [
        "mp.Process(target=train, args=(0, 2)).start()",
        "multiprocessing.Process(None, train, args=(0, 2)).start()",
        'mp.get_context("spawn").Process(target=train, args=(0, 2)).start()',
        "workers = [mp.Process(target=train, args=(i, 2)) for i in range(2)]",
        "runner.run(train, 2)",
        "launch(train, processes=2)",
    ],
)
def test_a_start_of_processes_is_marked(start: str) -> None:
    change = started(start).said("MG208", start, Kind.TODO)
    assert "call train itself" in change.message


def test_a_launcher_by_its_name_is_marked_whatever_the_function_takes() -> None:
    started("launch(train, 2)", parameters="args", rank="args.rank").said("MG208", "launch(train, 2)", Kind.TODO)


@pytest.mark.parametrize(
    "start", ["train(0, 2)", "mp.spawn(train, args=(2,), nprocs=2)", "functools.partial(train, size=2)(0)"]
)
def test_other_starts_are_not_marked(start: str) -> None:
    started(start).silent("MG208")


def test_a_function_that_takes_no_rank_may_be_handed_to_an_application() -> None:
    started("app.run(train)", parameters="argv", rank='int(os.environ["RANK"])').silent("MG208")


def test_a_process_for_something_else_is_not_marked() -> None:
    started("mp.Process(target=print).start()\n        train(0, 2)").silent("MG208")


def test_a_signal_handler_of_the_parent_is_told() -> None:
    line = "signal.signal(signal.SIGUSR1, print)"
    migrated = started(f"import signal\n        {line}\n        mp.spawn(train, args=(2,), nprocs=2)")
    assert "the launcher" in migrated.said("MG207", line, Kind.KEPT).message
