"""Buffers: what DDP sent of them, and what is sent now."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.idioms.test_model import trained

CENTRED = """
def average(old, new, decay=0.9):
    old.data.mul_(decay).add_(new * (1 - decay))


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))
        self.layers = nn.Linear(3, 3)
        self.mean = torch.ones(3)

    def update(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)

    def forward(self, x):
        {write}
        return self.layers(x - self.mean)
"""
EACH = "ds_compat.broadcast_buffers_each_forward(model)"


@pytest.mark.parametrize(
    "write",
    [
        "self.mean = 0.9 * self.mean + 0.1 * x.mean(0)",
        "self.mean.mul_(0.9).add_(x.mean(0))",
        "self.mean += x.mean(0)",
        "self.mean[:2] = x.mean(0)[:2]",
        "self.mean.data.copy_(x.mean(0))",
        "batch = x.mean(0)\n        with torch.no_grad():\n            self.mean.lerp_(batch, 0.1)",
        "torch.add(self.mean, x.mean(0), out=self.mean)",
        "average(self.mean, x.mean(0))",
        "self.update(x)",
        "self.mean += torch.randn(3)",
    ],
)
def test_a_buffer_of_the_ranks_own_data_is_sent_before_each_forward(write: str) -> None:
    found = trained(helpers=CENTRED.format(write=write), model="model = DDP(Centred().cuda())")
    assert EACH in found.text
    found.said("MG128", Kind.CONVERTED)


@pytest.mark.parametrize(
    "write",
    [
        "x = x + self.mean",
        "self.count += 1",
        "self.count[0] = (int(self.count) + 1) % 10",
        "self.mean.copy_(self.layers.weight.mean(0))",
        "batch = x.mean(0)\n        dist.all_reduce(batch)\n        self.mean = 0.9 * self.mean + 0.1 * batch",
    ],
)
def test_a_buffer_that_is_the_same_on_all_ranks_is_left_alone(write: str) -> None:
    assert EACH not in trained(helpers=CENTRED.format(write=write), model="model = DDP(Centred().cuda())").text


def test_buffers_that_ddp_did_not_send_are_not_sent() -> None:
    helpers = CENTRED.format(write="self.update(x)")
    assert EACH not in trained(helpers=helpers, model="model = DDP(Centred().cuda(), broadcast_buffers=False)").text


NORMED = "model = DDP(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda())"
VALIDATE = (
    "def validate(model):\n    model.eval()\n    with torch.no_grad():\n"
    "        return sum(model(x).sum() for x in loader)"
)


@pytest.mark.parametrize("end", ["print(validate(model))", "if args.half:\n    best = validate(model.module)"])
def test_statistics_are_sent_where_all_ranks_evaluate(end: str) -> None:
    found = trained(helpers=VALIDATE, model=NORMED, end=end)
    assert EACH in found.text
    found.said("MG129", Kind.CONVERTED)


@pytest.mark.parametrize("end", ["if dist.get_rank() == 0:\n    validate(model.module)", "pass"])
def test_rank_0_has_its_statistics_anyway(end: str) -> None:
    assert EACH not in trained(helpers=VALIDATE, model=NORMED, end=end).text


def test_statistics_that_are_equal_are_left_alone() -> None:
    model = (
        "net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))\n"
        "model = DDP(net.cuda())"
    )
    assert EACH not in trained(helpers=VALIDATE, model=model, end="print(validate(model))").text


def test_an_evaluation_of_one_rank_uses_the_module() -> None:
    alone = "if dist.get_rank() == 0:\n    with torch.no_grad():\n        print(model(torch.ones(2, 3)))"
    end = f"validate(model.module)\n{alone}"
    found = trained(helpers=VALIDATE, model=NORMED, end=end)
    assert "print(model.module(torch.ones(2, 3)))" in found.text
    assert not found.todos


def test_the_wrapped_forward_of_one_rank_would_wait() -> None:
    found = trained(
        helpers=VALIDATE, model=NORMED, end="validate(model.module)\nif dist.get_rank() == 0:\n    validate(model)"
    )
    found.said("MG129", Kind.TODO)


def test_an_evaluation_of_one_rank_that_runs_without_a_wrapper_come_to_too_uses_the_module() -> None:
    wrap = "model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()\nif args.wrap:\n    model = DDP(model)"
    alone = "if dist.get_rank() == 0:\n    with torch.no_grad():\n        print(model(torch.ones(2, 3)))"
    helpers = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        f"parser.add_argument('--wrap', action='store_true')\nargs = parser.parse_args()\n{VALIDATE}"
    )
    found = trained(helpers=helpers, model=wrap, end=f"validate(model)\n{alone}")
    assert "print(model.module(torch.ones(2, 3)))" in found.text
    assert not found.todos


LAUNCHED = (
    "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--local_rank', type=int, default=-1)\nargs = parser.parse_args()\n"
)


@pytest.mark.parametrize("test", ["args.local_rank != -1", "args.local_rank >= 0", "args.local_rank > -1"])
def test_ranks_do_not_part_where_they_are_asked_whether_a_launcher_started_them(test: str) -> None:
    wrap = f"model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()\nif {test}:\n    model = DDP(model)"
    found = trained(helpers=LAUNCHED + VALIDATE, model=wrap, end="print(validate(model))")
    assert EACH in found.text


def test_ranks_part_at_a_test_of_the_first() -> None:
    wrap = "model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()\nmodel = DDP(model)"
    found = trained(
        helpers=LAUNCHED + VALIDATE, model=wrap, end="if args.local_rank < 1:\n    print(validate(model.module))"
    )
    assert EACH not in found.text
