"""The commands that start a converted script."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert, migrate

TORCHRUN, DEEPSPEED = "torchrun --nproc_per_node 2 train.py", "deepspeed --num_gpus 2 --no_local_rank train.py"


@pytest.mark.parametrize(
    "read", ['os.environ["LOCAL_RANK"]', 'os.environ.get("LOCAL_WORLD_SIZE", "1")', '"GROUP_RANK" in os.environ']
)
def test_both_launchers_start_a_script(read: str) -> None:
    assert convert(end=f"print({read})").result.launch == (TORCHRUN, DEEPSPEED)


@pytest.mark.parametrize("name", ["LOCAL_WORLD_SIZE", "GROUP_RANK"])
def test_a_script_that_needs_what_torchrun_sets_is_started_by_it(name: str) -> None:
    assert convert(end=f'print(os.environ["{name}"])').result.launch == (TORCHRUN,)
    assert convert(end=f'keys = ["RANK", "{name}"]\nprint([os.environ[key] for key in keys])').result.launch == (
        TORCHRUN,
    )


_TRAINER = """
    import os
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP

    torch.manual_seed(0)
    rank = int(os.environ["LOCAL_RANK"])

    def train(model, loader):
        model = DDP(model.to(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = ((model(x.to(rank)) - y.to(rank)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


def test_a_file_that_only_defines_things_is_said_to_start_nothing() -> None:
    change = migrate(_TRAINER).said("MG209", "model = DDP(", Kind.KEPT)
    assert "launch the script that imports it" in change.message


@pytest.mark.parametrize("start", ["train(net, data)", 'if __name__ == "__main__":\n        run()', "fire.Fire(train)"])
def test_a_file_that_may_start_a_training_is_launched(start: str) -> None:
    migrate(f"{_TRAINER}\n    {start}\n").silent("MG209")
