"""Trainers of which a table or a choice says, when the script runs, which class they are of."""

from __future__ import annotations

import pytest

from tests.codemod.checks import migrate

SCRIPT = """
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Plain:
    def __init__(self, net, args):
        self.net = net
        self.optimizer = self.made(args)

    def made(self, args):
        return torch.optim.SGD(self.net.parameters(), lr=args.lr)

    def train(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            self.step(x)

    def step(self, x):
        self.net(x.cuda()).sum().backward()
        self.optimizer.step()


class Scaled(Plain):
    def step(self, x):
        (self.net(x.cuda()).sum() * 2).backward()
        self.optimizer.step()


TRAINERS = {"plain": Plain, "scaled": Scaled}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", default="plain")
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    net = DDP(nn.Linear(4, 4).cuda())
    {made}
    trainer.train([torch.randn(4, 4)])


main()
"""


@pytest.mark.parametrize(
    "made",
    [
        "trainer = TRAINERS[args.trainer](net, args)",
        "cls = TRAINERS[args.trainer]\n    trainer = cls(net, args)",
        "cls = Scaled if args.trainer == 'scaled' else Plain\n    trainer = cls(net, args)",
        "if args.lr > 1:\n        cls = Plain\n    else:\n        cls = Scaled\n    trainer = cls(net, args)",
    ],
)
def test_every_class_that_may_be_chosen_is_converted(made: str) -> None:
    code = migrate(SCRIPT.replace("{made}", made)).code
    assert code.count("deepspeed.initialize(") == 1
    assert code.count("self.net.backward(") == code.count("self.net.step()") == 2
    assert ".backward()" not in code


def test_a_table_with_something_else_in_it_is_not_followed() -> None:
    made = "trainer = TRAINERS[args.trainer](net, args)"
    script = SCRIPT.replace("{made}", made).replace('"plain": Plain,', '"plain": make_plain,')
    assert "MG911" in migrate(script).told()
