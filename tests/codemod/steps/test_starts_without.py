"""Starts that only evaluate: those that make no optimizer for the engine, and those that never come to the engine."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert, migrate

WRAP = "net = Net().cuda()\n{made}\nmodel = DDP(net)"
MADE = "if {test}:\n    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)"
LEAVE = "if {test}:\n    print(model(torch.ones(1, 32).cuda()))\n    return args"


def started(made: str, leave: str, before: str = "") -> Migrated:
    wrap = WRAP.format(made=MADE.format(test=made) + f"\n{before}")
    resume = LEAVE.format(test=leave) if leave else ""
    return convert(order="group data wrap resume loop end", wrap=wrap, resume=resume)


@pytest.mark.parametrize(
    ("made", "leave"),
    [
        ("not args.amp", "args.amp"),
        ("not (args.amp or args.distributed)", "args.amp"),
        ("args.epochs", "not args.epochs"),
    ],
)
def test_an_engine_without_an_optimizer_is_marked(made: str, leave: str) -> None:
    change = started(made, leave).said("MG523", "model = DDP(net)", Kind.TODO)
    assert "no optimizer is made where " in change.message


@pytest.mark.parametrize(
    ("made", "leave", "before"),
    [
        ("not args.amp", "", ""),  # nothing says that the script can do without
        ("not args.amp", "args.distributed", ""),
        ("not args.amp", "args.amp", "if args.amp:\n    return args"),
        ("not args.amp", "args.amp", "else:\n    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)"),
    ],
)
def test_an_engine_that_always_has_one_is_not(made: str, leave: str, before: str) -> None:
    started(made, leave, before).silent("MG523")


EXPERIMENT = """
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Experiment:
    def __init__(self):
        torch.distributed.init_process_group("nccl")
        self.model = DDP(nn.Linear(32, 10).cuda())

    def train(self, loader):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            optimizer.step()
        torch.save(self.model.state_dict(), "last.pt")

    def test(self, loader):
        self.model.load_state_dict(torch.load("last.pt"))
        print(self.model(next(iter(loader))[0]))


def main(loader):
    experiment = Experiment()
    STARTS
"""
LOAD = 'self.model.load_state_dict(torch.load("last.pt"))'


def test_a_load_of_a_start_that_does_not_train_is_marked() -> None:
    starts = 'if "test" in sys.argv:\n        experiment.test(loader)\n    else:\n        experiment.train(loader)'
    migrated = migrate(EXPERIMENT.replace("STARTS", starts))
    assert "runs without train()" in migrated.said("MG523", LOAD, Kind.TODO).message
    migrate(EXPERIMENT.replace("STARTS", "experiment.train(loader)\n    experiment.test(loader)")).silent("MG523")
