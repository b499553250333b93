"""Settings that a trainer keeps in attributes, behind the optimizer or before it, and asks for by helpers."""

from __future__ import annotations

import pytest

from tests.codemod.checks import Migrated, migrate

SCRIPT = """
import torch
import torch.distributed as dist
from torch import nn
from torch.cuda.amp import autocast
from torch.nn.parallel import DistributedDataParallel as DDP


def exists(x):
    return x is not None


def is_large(x):
    return x > 3


class Trainer:
    def __init__(self, net, *, amp=False, limit=1.0):
        self.model = DDP(net.cuda())
        self.limit = limit
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.size = sum(p.numel() for p in self.model.parameters())
        {line}

    def train(self, batches):
        for x in batches:
            with autocast(enabled=self.amp, dtype=torch.bfloat16):
                loss = self.model(x.cuda()).sum()
            loss.backward()
            if {test}:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.limit)
            self.opt.step()
            self.opt.zero_grad()


def main():
    dist.init_process_group("nccl")
    Trainer(nn.Linear(4, 4), amp=bool(int(input()))).train([torch.randn(4, 4)])


main()
"""


def trainer(line: str = "self.amp = amp", test: str = "exists(self.limit)") -> Migrated:
    return migrate(SCRIPT.replace("{line}", line).replace("{test}", test))


@pytest.mark.parametrize(("line", "value"), [("self.amp = amp", "amp"), ("self.amp = amp and True", "amp and True")])
def test_an_attribute_that_is_set_behind_the_engine_gives_what_it_is_set_to(line: str, value: str) -> None:
    migrated = trainer(line)
    assert f'ds_config["torch_autocast"]["enabled"] = bool({value})\n' in migrated.code
    migrated.silent("MG307")


@pytest.mark.parametrize(
    "line",
    [
        "self.amp = amp\n        self.amp = self.amp and self.size > 3",
        "amp = amp and self.size > 3\n        self.amp = amp",
        "if self.size > 3:\n            self.amp = amp",
        "self.amp = self.size > 3",
    ],
)
def test_one_that_is_not_known_where_the_engine_is_made_is_marked(line: str) -> None:
    migrated = trainer(line)
    assert "TODO(dsmigrate MG307)" in migrated.code or "self.amp" in migrated.code.partition("ds_config[")[0]


def test_a_helper_that_asks_for_none_lets_the_engine_clip() -> None:
    migrated = trainer()
    assert 'ds_config["gradient_clipping"] = self.limit or 0.0\n' in migrated.code
    assert migrated.config["zero_optimization"]["stage"] == 2


def test_a_helper_that_asks_for_more_keeps_the_clip() -> None:
    migrated = trainer(test="is_large(self.limit)")
    assert "clip_grad_norm_" in migrated.code
    assert migrated.config["zero_optimization"]["stage"] == 0
