"""The engine made and used in one statement, ``Trainer(net).fit()``: what runs behind the making has the engine."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

TRAINER = """
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, net, loader):
        self.model = DDP(net.cuda())
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.loader = loader
{made}
{method}    def fit(self):
        for x, y in self.loader:
            loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
{step}
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), "net.pt")
        return loss


{function}def main(net, loader):
    dist.init_process_group("nccl")
    {main}


main(nn.Linear(8, 4), load())
"""
SAVE = 'torch.save(self.model.module.state_dict(), "net.pt")'
CLAMP = "self.model.module.weight.data.clamp_(-1, 1)"
LOAD = 'self.model.module.load_state_dict(torch.load("first.pt"))'
OF = """    @classmethod
    def of(cls, net, loader):
        return cls(net, loader)

"""
SEEDED = """    def seeded(self):
        torch.manual_seed(1)
        return self

"""
CALLED = """    def __call__(self):
        return self.fit()

"""
ENTERED = """    def __enter__(self):
        return self

    def __exit__(self, *kinds):
        self.loader.close()

"""
MAKE = "def make(net, loader):\n    return Trainer(net, loader)\n\n\n"
RUN = "def run(trainer):\n    return trainer.fit()\n\n\n"
SPELLINGS = [
    ("Trainer(net, loader).fit()", "", ""),
    ("loss = Trainer(net, loader).fit()", "", ""),
    ("return Trainer(net, loader).fit()", "", ""),
    ("Trainer(net, loader).seeded().fit()", SEEDED, ""),
    ("Trainer(net, loader)()", CALLED, ""),
    ("Trainer.of(net, loader).fit()", OF, ""),
    ("make(net, loader).fit()", "", MAKE),
    ("run(Trainer(net, loader))", "", RUN),
    ("print(0, run(trainer=make(net, loader)).item())", "", MAKE + RUN),
    ("if Trainer(net, loader).fit() > 1: print('high')", "", ""),
    ("with Trainer(net, loader) as trainer: trainer.fit()", ENTERED, ""),
    ("(trainer := Trainer(net, loader)).fit()", "", ""),
    ("trainer = Trainer(net, loader); trainer.fit()", "", ""),
]


def converted(main: str, step: str = "", made: str = "", method: str = "", function: str = "") -> Migrated:
    parts = {
        "main": main,
        "step": f"            {step}\n" if step else "",
        "made": f"        {made}\n" if made else "",
        "method": method,
        "function": function,
    }
    text = TRAINER
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}\n" if not part and name == "step" else f"{{{name}}}", part)
    return migrate(text)


@pytest.mark.parametrize(("main", "method", "function"), SPELLINGS)
def test_methods_behind_the_making_call_keep_the_module_of_the_engine(main: str, method: str, function: str) -> None:
    migrated = converted(main, method=method, function=function)
    assert SAVE in migrated.code
    migrated.said("MG624", SAVE)


@pytest.mark.parametrize(("main", "method", "function"), SPELLINGS)
def test_weights_written_behind_the_making_call_need_stage_zero(main: str, method: str, function: str) -> None:
    migrated = converted(main, step=CLAMP, method=method, function=function)
    migrated.said("MG509", CLAMP, Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


@pytest.mark.parametrize(("main", "method", "function"), [one for one in SPELLINGS if one[1] != CALLED])
def test_weights_loaded_behind_the_wrap_are_left_to_the_person(main: str, method: str, function: str) -> None:
    converted(main, made=LOAD, method=method, function=function).said("MG625", LOAD, Kind.TODO)


def test_what_makes_the_argument_of_the_making_call_still_has_the_plain_model() -> None:
    warm = "def warm(net):\n    net.weight.data.zero_()\n    return net\n\n\n"
    converted("Trainer(warm(net), loader).fit()", function=warm).silent("MG509")
