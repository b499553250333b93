"""What a spawning script did once, in the parent."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert, migrate
from tests.codemod.steps.spawn_scripts import NOTHING_ELSE, SPAWNED

_SCRIPT = """
    import os
    import random
    import sys
    import numpy as np
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    import urllib.request
    import yaml
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler

    def draw():
        return order()

    def order():
        return np.random.permutation(100)

    def settings():
        return dict(epochs=3)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.randn(3))

    def test(net):
        print(sum(p.sum().item() for p in net.parameters()))

    def worker(rank, size, data, epochs):
        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=size)
        torch.cuda.set_device(rank)
        loader = DataLoader(data, batch_size=64, sampler=DistributedSampler(data, size, rank))
        model = DDP(nn.Linear(32, 10).cuda(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x.cuda(rank)), y.cuda(rank)).backward()
                optimizer.step()

    def launch(data):
        size = torch.cuda.device_count()
        mp.spawn(worker, args=(size, data, 10), nprocs=size)

    if __name__ == "__main__":
        {before}
        launch(None)
        {behind}
    """


def _parent(before: str = "pass", behind: str = "pass", **changed: tuple[str, str]) -> Migrated:
    indent = "\n        "
    text = _SCRIPT.format(before=before.replace("\n", indent), behind=behind.replace("\n", indent))
    for old, new in changed.values():
        text = text.replace(old, new)
    return migrate(text)


def test_a_seed_before_the_function_that_spawns_is_told() -> None:
    message = _parent("torch.manual_seed(3)").said("MG207", "torch.manual_seed(3)", Kind.KEPT).message
    assert "seeded the parent only" in message


@pytest.mark.parametrize("line", ['np.save("order.npy", 1)', "data = draw()", "data = random.sample(range(9), 3)"])
def test_work_before_the_function_that_spawns_is_marked(line: str) -> None:
    assert "ran once in the parent and was shared" in _parent(line).said("MG207", line, Kind.TODO).message


def test_draws_of_a_library_that_the_parent_seeded_are_alike_now() -> None:
    changes = _parent("np.random.seed(3)\ndata = draw()").changes
    assert [change.kind for change in changes if change.code == "MG207"] == [Kind.KEPT]
    assert _parent("torch.manual_seed(3)\ndata = draw()").said("MG207", "data = draw()", Kind.TODO)


@pytest.mark.parametrize(
    "line",
    [
        "args = settings()",
        'args = yaml.safe_load(open("a.yaml"))',
        "net = Net()",
        "place = torch.accelerator.current_accelerator()",
        'names = urllib.request.urlopen("https://example.org/names").readlines()',
    ],
)
def test_what_comes_out_the_same_everywhere_is_not_marked(line: str) -> None:
    _parent(line).silent("MG207")


def test_what_is_written_to_disk_is_marked_still() -> None:
    line = 'path, _ = urllib.request.urlretrieve("https://example.org/names", "names.txt")'
    assert _parent(line).said("MG207", line, Kind.TODO)


@pytest.mark.parametrize(("method", "inherits"), [("fork", True), ("spawn", False)])
def test_forked_workers_have_the_seed_and_the_handlers_of_their_parent(method: str, inherits: bool) -> None:
    line = "mp.spawn(worker, args=(size, data, 10), nprocs=size)"
    started = f'mp.start_processes(worker, args=(size, data, 10), nprocs=size, start_method="{method}")'
    handler = "signal.signal(signal.SIGTERM, print)"
    migrated = _parent(
        f"torch.manual_seed(3)\n{handler}", spawn=(line, started), signal=("import sys", "import signal, sys")
    )
    told = [change.message for change in migrated.changes if change.code == "MG207"]
    assert any("seeded the parent only" in message for message in told) is not inherits
    assert any(message.startswith("this handler stood in the parent only") for message in told) is not inherits
    assert any(message.startswith("the parent had this handler too") for message in told) is inherits


@pytest.mark.parametrize("line", ["test(net)", 'os.remove("part.npy")', 'net.load_state_dict(torch.load("final.pt"))'])
def test_what_stands_behind_the_spawn_is_marked_once(line: str) -> None:
    migrated = _parent(behind=f'print("done")\n{line}\ntest(None)')
    assert "ran once, when all workers had ended" in migrated.said("MG218", line, Kind.TODO).message
    assert [change.code for change in migrated.changes].count("MG218") == 1


@pytest.mark.parametrize("line", ['print("done")', "sys.exit(0)\ntest(None)"])
def test_words_and_what_is_not_reached_need_no_care_behind_the_spawn(line: str) -> None:
    _parent(behind=line).silent("MG207", "MG218")


@pytest.mark.parametrize(
    "spawn",
    [
        "if size > 1:\n            {spawn}\n        else:\n            test(None)",
        "if size > 1:\n            {spawn}\n            return\n        test(None)",
        "try:\n            {spawn}\n        except KeyboardInterrupt:\n            test(None)",
    ],
)
def test_another_path_than_that_of_the_spawn_is_not_behind_it(spawn: str) -> None:
    line = "mp.spawn(worker, args=(size, data, 10), nprocs=size)"
    _parent(spawn=(line, spawn.format(spawn=line))).silent("MG207", "MG218")


def _spawning(before: str, helpers: str = "") -> Migrated:
    return convert(
        imports="import random\nimport numpy as np",
        helpers=SPAWNED + helpers,
        **NOTHING_ELSE,
        end=f"{before}\nsize = torch.cuda.device_count()\nmp.spawn(worker, args=(size, 10, args), nprocs=size)",
    )


@pytest.mark.parametrize(
    "seed", ["torch.manual_seed(0)", "random.seed(args.epochs)", "np.random.seed(0)", "seed_all()"]
)
def test_a_seed_in_the_parent_reached_no_worker(seed: str) -> None:
    helpers = "\ndef seed_all():\n    random.seed(3)\n    torch.manual_seed(3)\n"
    said = _spawning(seed, helpers).said("MG207", seed, Kind.KEPT)
    assert seed.partition("(")[0] in said.message
    assert "seeded the parent only" in said.message
    assert "all ranks draw the same numbers" in said.message


def test_a_value_that_is_the_same_everywhere_is_no_work_of_the_parent() -> None:
    _spawning("order = torch.arange(9)\nprint(order)").silent("MG207")


def test_several_seeds_of_the_parent_are_told_together() -> None:
    migrated = _spawning("if args.lr:\n    random.seed(1)\n    torch.manual_seed(1)")
    assert migrated.said("MG207", "random.seed(1)").message.startswith(
        "random.seed, torch.manual_seed seeded the parent"
    )
    assert [change.code for change in migrated.changes].count("MG207") == 1


def test_a_setup_that_downloads_and_seeds_is_seen_for_its_seed() -> None:
    helpers = "\ndef prepare():\n    torch.manual_seed(3)\n"
    assert "seeded the parent" in _spawning("prepare()", helpers).said("MG207", "    prepare()").message


def test_a_generator_with_a_seed_of_its_own_is_no_seed_of_the_process() -> None:
    migrated = _spawning("order = torch.randperm(9, generator=torch.Generator().manual_seed(3))\nprint(order)")
    assert all("seeded the parent" not in change.message for change in migrated.changes)


@pytest.mark.parametrize(("line", "marked"), [("", 0), ("print(args.url)", 1)])
def test_an_address_that_only_the_process_group_read_needs_no_care(line: str, marked: int) -> None:
    address = 'args.url = f"tcp://localhost:{random.randrange(49152, 65535)}"\n'
    migrated = convert(
        imports="import random",
        helpers=SPAWNED.replace('"tcp://localhost:23456"', "args.url"),
        **NOTHING_ELSE,
        end=f"{address}{line}\nmp.spawn(worker, args=(2, 10, args), nprocs=torch.cuda.device_count())",
    )
    assert [change.code for change in migrated.changes].count("MG207") == marked


def test_a_folder_that_may_be_there_already_needs_no_order() -> None:
    _parent('os.makedirs("out", exist_ok=True)').silent("MG207")
    _parent('os.makedirs("out")').said("MG207", 'os.makedirs("out")', Kind.TODO)


def test_a_folder_that_each_process_would_call_otherwise_is_told() -> None:
    before = "name = str(random.random())\nos.makedirs(name, exist_ok=True)"
    _parent(before).said("MG207", "os.makedirs(name, exist_ok=True)", Kind.TODO)
