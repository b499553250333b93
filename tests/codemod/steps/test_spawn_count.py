"""The number of processes that a spawn started, in everything that is worked out from it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert, migrate
from tests.codemod.steps.spawn_scripts import NOTHING_ELSE, SPAWNED

_SCRIPT = """
    import os
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler
    from digits import Digits

    GPUS = {value}

    def loader_of(rank):
        dataset = Digits()
        return DataLoader(dataset, batch_size=64 // GPUS, sampler=DistributedSampler(dataset, GPUS, rank))

    def worker(rank, size, epochs):
        print("one of", GPUS)
        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size={size})
        torch.cuda.set_device(rank)
        loader = loader_of(rank)
        model = DDP(nn.Linear(32, 10).cuda(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * size)
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x.cuda(rank)), y.cuda(rank)).backward()
                optimizer.step()

    if __name__ == "__main__":
        mp.spawn(worker, args=({given}, 10), nprocs={count})
    """


def _script(value: str, size: str = "GPUS", given: str = "GPUS", count: str = "GPUS") -> str:
    return _SCRIPT.format(value=value, size=size, given=given, count=count)


@pytest.mark.parametrize("size", ["GPUS", "size"])
@pytest.mark.parametrize("value", ["4", "torch.cuda.device_count()", "min(4, torch.cuda.device_count())"])
def test_what_is_worked_out_from_the_count_agrees_with_the_launcher(value: str, size: str) -> None:
    """With the count as it was, two processes of the launcher would read shards of four: half of the data."""
    migrated = migrate(_script(value, size=size))
    assert f'\nGPUS = int(os.environ.get("WORLD_SIZE", {value}))\n' in migrated.code
    assert "GPUS = deepspeed" not in migrated.code
    assert "number of processes" in migrated.said("MG202", "GPUS = ", Kind.CONVERTED).message


def test_a_count_in_main_that_divides_the_batch_agrees_with_the_launcher() -> None:
    made = "        gpus = torch.cuda.device_count()\n        print(64 // gpus)\n        mp.spawn"
    code = migrate(_script("8", size="size", given="gpus", count="gpus").replace("        mp.spawn", made)).code
    assert 'gpus = int(os.environ.get("WORLD_SIZE", torch.cuda.device_count()))\n    print(64 // gpus)' in code
    assert "\nGPUS = 8\n" in code


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("torch.cuda.device_count()", "GPUS * 2"),  # of several nodes
        ('int(input("how many? "))', "GPUS"),
    ],
)
def test_a_count_that_may_be_another_one_stays(value: str, size: str) -> None:
    assert f"\nGPUS = {value}\n" in migrate(_script(value, size=size).replace('print("one of", GPUS)', "pass")).code


@pytest.mark.parametrize("value", ['int(input("how many? "))', "settings.gpus"])
def test_a_count_that_cannot_be_read_here_has_to_be_given_to_the_launcher(value: str) -> None:
    text = _script(value, size="size")
    assert "start exactly GPUS processes" in migrate(text).said("MG202", "mp.spawn", Kind.TODO).message
    alone = text.replace("64 // GPUS", "64").replace("dataset, GPUS", "dataset, 2").replace('print("one of", GPUS)', "")
    assert "start exactly" not in " ".join(change.message for change in migrate(alone).changes)


@pytest.mark.parametrize("count", ["args.gpus", "gpus"])
def test_an_option_that_is_the_count_is_given_in_the_launch_line(count: str) -> None:
    made = [
        "        parser = argparse.ArgumentParser()",
        "        parser.add_argument('--gpus', type=int)",
        "        args = parser.parse_args()",
        "        if torch.version.cuda is None:",
        "            args.gpus = 1",
        "        gpus = args.gpus",
        f"        print({count})",
        "        mp.spawn",
    ]
    text = _script("3", size="size", given=count, count=count).replace("        mp.spawn", "\n".join(made))
    migrated = migrate(text.replace("import os\n", "import os\n    import argparse\n"))
    assert migrated.result.launch[0].endswith("train.py --gpus 2")
    assert "\n        args.gpus = 1\n    gpus = args.gpus\n" in migrated.code
    assert "start exactly" not in " ".join(change.message for change in migrated.changes)


def test_a_count_with_a_value_for_the_cpu_takes_the_launchers_in_both() -> None:
    value = "torch.cuda.device_count() if torch.cuda.is_available() else 1"
    assert f'GPUS = int(os.environ.get("WORLD_SIZE", {value}))' in migrate(_script(value)).code
    branches = "if torch.version.cuda is None:\n        GPUS = 1\n    else:\n        GPUS = torch.cuda.device_count()"
    code = migrate(_script("1").replace("GPUS = 1", branches)).code
    assert code.count('GPUS = int(os.environ.get("WORLD_SIZE", ') == 2


def test_a_world_size_of_the_whole_file_is_not_made_a_name_of_the_function() -> None:
    text = _script("settings.gpus")
    migrated = migrate(text)
    assert "GPUS = deepspeed" not in migrated.code
    assert "start exactly GPUS" in migrated.said("MG202", "mp.spawn", Kind.TODO).message
    started = text.replace("mp.spawn(worker, args=(GPUS, 10), nprocs=GPUS)", "worker(int(sys.argv[1]), GPUS, 10)")
    alone = migrate(started)
    assert "GPUS = deepspeed" not in alone.code
    assert "start exactly GPUS" in alone.said("MG202", "dist.init_process_group", Kind.TODO).message


@pytest.mark.parametrize("count", ["4", "GPUS"])
def test_a_count_that_is_written_out_is_that_of_the_launch_line(count: str) -> None:
    assert migrate(_script("4", count=count)).result.launch == (
        "torchrun --nproc_per_node 4 train.py",
        "deepspeed --num_gpus 4 --no_local_rank train.py",
    )


def test_as_many_processes_as_devices_are_counted_by_the_launcher() -> None:
    assert migrate(_script("torch.cuda.device_count()")).result.launch == (
        "torchrun --nproc_per_node gpu train.py",
        "deepspeed --no_local_rank train.py",
    )


def test_devices_are_counted_by_the_launcher_where_the_cpu_has_one_process() -> None:
    value = "torch.cuda.device_count() if torch.cuda.is_available() else 1"
    assert "--nproc_per_node gpu " in migrate(_script(value)).result.launch[0]
    branches = "if torch.version.cuda is None:\n        GPUS = 1\n    else:\n        GPUS = torch.cuda.device_count()"
    assert "--nproc_per_node gpu " in migrate(_script("1").replace("GPUS = 1", branches)).result.launch[0]


@pytest.mark.parametrize("overwritten", [True, False])
@pytest.mark.parametrize(
    ("default", "processes", "given"), [("4", "4", " --gpus 4"), ("torch.cuda.device_count()", "gpu", "")]
)
def test_the_default_of_an_option_that_is_the_count_is_that_of_the_launch_line(
    default: str, processes: str, given: str, *, overwritten: bool
) -> None:
    made = ["import argparse", "parser = argparse.ArgumentParser()",
            f"parser.add_argument('--gpus', type=int, default={default})", "args = parser.parse_args()"]  # fmt: skip
    if overwritten:
        made.append("if torch.version.cuda is None:\n            args.gpus = 1")
        processes = "2" if processes == "gpu" else processes
    text = _script("3", size="size", given="args.gpus", count="args.gpus")
    migrated = migrate(
        text.replace("        mp.spawn", "".join(f"        {line}\n" for line in made) + "        mp.spawn")
    )
    assert migrated.result.launch[0] == f"torchrun --nproc_per_node {processes} train.py{given}"


@pytest.mark.parametrize(("default", "processes"), [("0,1,3", "3"), ("0", "1"), ("", "2")])
def test_devices_that_an_option_lists_by_default_are_counted_in_the_launch_line(default: str, processes: str) -> None:
    made = ["import argparse", "parser = argparse.ArgumentParser()",
            f"parser.add_argument('--gpu', default='{default}')", "args = parser.parse_args()",
            "devices = [int(d) for d in args.gpu.split(',')]"]  # fmt: skip
    text = _script("3", size="size", given="len(devices)", count="len(devices)")
    text = text.replace("        mp.spawn", "".join(f"        {line}\n" for line in made) + "        mp.spawn")
    assert migrate(text).result.launch[0] == f"torchrun --nproc_per_node {processes} train.py"


def test_a_count_that_the_worker_gets_in_a_tuple_agrees_with_the_launcher() -> None:
    packed = "given = (GPUS, 10)\n        mp.spawn(worker, args=given"
    text = _script("torch.cuda.device_count()", size="size").replace("mp.spawn(worker, args=(GPUS, 10)", packed)
    assert '\nGPUS = int(os.environ.get("WORLD_SIZE", torch.cuda.device_count()))\n' in migrate(text).code
    swapped = text.replace("given = (GPUS, 10)", "given = (10, GPUS)")
    assert "\nGPUS = torch.cuda.device_count()\n" in migrate(swapped).code


def test_a_count_that_reaches_the_group_through_the_environment_agrees_with_the_launcher() -> None:
    handed = 'dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=GPUS)'
    taken = 'os.environ["WORLD_SIZE"] = str(size)\n        dist.init_process_group("nccl")'
    text = _script("torch.cuda.device_count()").replace(handed, taken)
    assert '\nGPUS = int(os.environ.get("WORLD_SIZE", torch.cuda.device_count()))\n' in migrate(text).code
    assert "\nGPUS = torch.cuda.device_count()\n" in migrate(text.replace("str(size)", "str(size * 2)")).code


WORLD = 'int(os.environ["WORLD_SIZE"])'


STARTED = 'int(os.environ.get("WORLD_SIZE", {}))'


@pytest.mark.parametrize(
    ("before", "count", "spawn", "after"),
    [
        ("size = COUNT\nargs.lr *= size", "size", "(size, 64 // size, args)", "size = STARTED|WORLD, 64 // size, args"),
        ("size = COUNT", "size", "(size, 64 // size, args)", "size = STARTED|WORLD, 64 // size, args"),
        ("size = COUNT\ngiven = (size, 9, args)", "size", "given", "size = STARTED|*given"),
        ("args.lr *= COUNT", "COUNT", "(2, 64 // COUNT, args)", "args.lr *= STARTED|2, 64 // WORLD, args"),
    ],
)
def test_what_followed_from_the_number_of_devices_follows_the_launcher(
    before: str, count: str, spawn: str, after: str
) -> None:
    """On a machine with more GPUs than processes batches and rates would be worked out for too many processes."""
    text = f"{before}\nmp.spawn(worker, args={spawn}, nprocs={count})".replace("COUNT", "torch.cuda.device_count()")
    migrated = convert(
        helpers=SPAWNED,
        **NOTHING_ELSE,
        end=text,
    )
    made, given = after.replace("STARTED", STARTED.format("torch.cuda.device_count()")).split("|")
    assert f"{made}\n" in migrated.section("end")
    assert f"""worker(int(os.environ["LOCAL_RANK"]), {given.replace("WORLD", WORLD)})""" in migrated.section("end")


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("args.batch = args.batch // gpus", True),
        ("args.lr *= gpus", True),
        ("args.batch = int(args.batch / gpus)", True),
        ("args.world_size = gpus * args.world_size", False),
        ("args.gpus = gpus", False),
    ],
)
def test_what_a_node_works_out_from_its_devices_needs_as_many_processes(line: str, marked: bool) -> None:
    worker = SPAWNED.replace("rank=gpu, world_size=world_size", "rank=args.rank, world_size=args.world_size").replace(
        "    dist.init", "    args.rank = args.rank * world_size + gpu\n    dist.init", 1
    )
    migrated = convert(
        helpers=worker,
        **NOTHING_ELSE,
        end=f"gpus = torch.cuda.device_count()\n{line}\nmp.spawn(worker, args=(gpus, 10, args), nprocs=gpus)",
    )
    assert "LOCAL_WORLD_SIZE" in migrated.section("end")
    if marked:
        migrated.said("MG202", line, Kind.TODO)
    else:
        assert "start exactly" not in migrated.code


def test_the_number_of_devices_is_followed_through_a_function_that_spawns() -> None:
    helpers = (
        SPAWNED
        + """

def start(function, size, args):
    mp.spawn(function, args=(size, 10, args), nprocs=size)
"""
    )
    migrated = convert(
        helpers=helpers,
        **NOTHING_ELSE,
        end="size = torch.cuda.device_count()\nargs.lr = args.lr * size\nstart(worker, size, args)",
    )
    started = STARTED.format("torch.cuda.device_count()")
    assert f"size = {started}\nargs.lr = args.lr * size\n" in migrated.section("end")
