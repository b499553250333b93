"""What the parent of spawned workers shared with them, or did before and after them, is marked."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

SCRIPT = """
    import functools
    import os
    import shutil

    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.parallel import DistributedDataParallel as DDP

    from elsewhere import prepare_data


    def train(rank, size, extra=None):
        dist.init_process_group("gloo", rank=rank, world_size=size)
        model = DDP(torch.nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(8, 2, 4):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()


    def start(size, option=None):
{start}


    def main():
{main}


    if __name__ == "__main__":
        main()
        {last}
    """
SPAWN = "mp.spawn(train, args=(size, None), nprocs=2)"


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines())


def spawned(start: str = SPAWN, main: str = "start(2)", last: str = "pass") -> Migrated:
    return migrate(SCRIPT.format(start=_indented(start), main=_indented(main), last=last))


@pytest.mark.parametrize(
    "made",
    [
        "mp.Queue()",
        "mp.SimpleQueue()",
        "mp.Manager().dict()",
        "mp.Barrier(size)",
        'mp.get_context("spawn").Queue()',
        'mp.Value("d", 0.0)',
    ],
)
@pytest.mark.parametrize(
    "spawn",
    ["mp.spawn(train, args=(size, shared), nprocs=2)", "given = (size, shared)\nmp.spawn(train, args=given, nprocs=2)"],
)
def test_an_object_that_processes_share_is_marked(made: str, spawn: str) -> None:
    change = spawned(f"shared = {made}\n{spawn}").said("MG218", f"shared = {made}", Kind.TODO)
    assert "shared was one for all workers" in change.message


@pytest.mark.parametrize(
    "before",
    [
        "manager = mp.Manager()\nshared = manager.list()",
        "context = mp.get_context('spawn')\nshared = context.Barrier(2)",
    ],
)
def test_an_object_of_a_manager_or_a_context_is_shared(before: str) -> None:
    spawned(f"{before}\nmp.spawn(train, args=(size, shared), nprocs=2)").said(
        "MG218", before.splitlines()[-1], Kind.TODO
    )


@pytest.mark.parametrize("made", ["dict()", "mp.cpu_count()", "torch.zeros(3)", "option.Queue()"])
def test_a_plain_value_is_not_marked(made: str) -> None:
    spawned(f"shared = {made}\nmp.spawn(train, args=(size, shared), nprocs=2)").silent("MG218")


@pytest.mark.parametrize(
    ("start", "main", "last", "line"),
    [
        (f'{SPAWN}\nweights = torch.load("best.pt")', "start(2)", "pass", 'weights = torch.load("best.pt")'),
        (SPAWN, 'start(2)\nshutil.rmtree("scratch")', "pass", 'shutil.rmtree("scratch")'),
        (SPAWN, "start(2)", 'os.remove("scratch")', 'os.remove("scratch")'),
        (f'if option:\n    {SPAWN}\nos.remove("a")', "start(2)", "pass", 'os.remove("a")'),
        (f'try:\n    {SPAWN}\nfinally:\n    os.remove("a")', "start(2)", "pass", 'os.remove("a")'),
    ],
)
def test_what_ran_when_all_workers_had_ended_is_marked(start: str, main: str, last: str, line: str) -> None:
    assert "when all workers had ended" in spawned(start, main, last).said("MG218", line, Kind.TODO).message


@pytest.mark.parametrize(
    "start",
    [
        SPAWN,
        f'{SPAWN}\nprint("done")',
        f"if size > 1:\n    {SPAWN}\nelse:\n    train(0, 1)",
        f"if size > 1:\n    {SPAWN}\n    return\ntrain(0, 1)",
        f'if size > 1:\n    {SPAWN}\n    return\nos.remove("a")',
        f'try:\n    {SPAWN}\nexcept KeyboardInterrupt:\n    os.remove("a")',
    ],
)
def test_what_does_not_follow_or_does_no_work_is_not_marked(start: str) -> None:
    spawned(start).silent("MG218")


@pytest.mark.parametrize(
    ("start", "main"),
    [
        (f"for fold in range(3):\n    {SPAWN}", "start(2)"),
        (SPAWN, "for fold in range(3):\n    start(2)"),
        (f"mp.spawn(train, args=(size,), nprocs=2)\n{SPAWN}", "start(2)"),
    ],
)
def test_several_trainings_in_turn_are_marked(start: str, main: str) -> None:
    migrated = spawned(start, main)
    line = SPAWN if SPAWN in start and "range" not in main else "start(2)"
    assert "several trainings" in migrated.said("MG218", line, Kind.TODO).message


def test_what_the_callers_of_the_spawn_did_before_it_is_marked() -> None:
    migrated = spawned(main='prepare_data("data")\nstart(2)')
    migrated.said("MG207", 'prepare_data("data")', Kind.TODO)


def test_a_seed_in_a_caller_of_the_spawn_is_told() -> None:
    migrated = spawned(main="torch.manual_seed(0)\nstart(2)")
    assert "seeded the parent only" in migrated.said("MG207", "torch.manual_seed(0)", Kind.KEPT).message


def test_the_other_branch_of_a_spawn_did_not_run_before_it() -> None:
    spawned(f'if size < 2:\n    prepare_data("data")\nelse:\n    {SPAWN}').silent("MG207")
