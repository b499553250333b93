"""Buffers that training writes from a rank's own data are sent before each forward, as DDP did."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

CENTRED = """
    import torch.distributed as dist


    def average(old, new, decay=0.9):
        old.data.mul_(decay).add_(new * (1 - decay))


    def gather_from_all(x):
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return torch.cat(parts)


    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(32))
            self.register_buffer("count", torch.zeros(1, dtype=torch.long))
            self.layers = nn.Linear(32, 10)
            self.mean = torch.ones(32)

        def update(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)

        def reset(self):
            self.mean.zero_()

        def forward(self, x):
    {write}
            return self.layers(x - self.mean)
    """
HOOK = "send_buffers(model)\n"


def written(write: str, wrap: str = "model = DDP(Centred().cuda())", **sections: str) -> Migrated:
    helpers = dedent(CENTRED).format(write=indent(dedent(write), " " * 8))
    return convert(helpers=helpers, wrap=wrap, **sections)


@pytest.mark.parametrize(
    "write",
    [
        "self.mean = 0.9 * self.mean + 0.1 * x.mean(0)",
        "self.mean.mul_(0.9).add_(x.mean(0))",
        "self.mean += x.mean(0)",
        "self.mean[:2] = x.mean(0)[:2]",
        "self.mean.data.copy_(x.mean(0))",
        "batch = x.mean(0)\nwith torch.no_grad():\n    self.mean.lerp_(batch, 0.1)",
        "torch.add(self.mean, x.mean(0), out=self.mean)",
        "average(self.mean, x.mean(0))",
        "self.update(x)",
        "self.mean += torch.randn(32)",
        "other = gather_from_all(x)\nself.mean += x.mean(0)",
    ],
)
def test_a_buffer_of_the_ranks_own_data_is_sent_before_each_forward(write: str) -> None:
    migrated = written(write)
    assert migrated.section("optimizer").endswith(f"torch.distributed.broadcast(buffer.data, src=0)\n{HOOK}")
    assert "def send_buffers(model):" in migrated.code
    migrated.said("MG128", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize(
    "write",
    [
        "x = x + self.mean",
        "self.count += 1",
        "step = int(self.count)\nstep = (step + 1) % 10\nself.count[0] = step",
        "self.mean.copy_(self.layers.weight.mean(0))",
        "everyone = gather_from_all(x)\nself.mean.copy_(everyone.mean(0))",
        "batch = x.mean(0)\ndist.all_reduce(batch)\nself.mean = 0.9 * self.mean + 0.1 * batch",
        "self.mean.copy_(gather_from_all(x).mean(0))",
    ],
)
def test_a_buffer_that_is_the_same_on_all_ranks_is_left_alone(write: str) -> None:
    migrated = written(write)
    migrated.silent("MG128")
    assert HOOK not in migrated.code


def test_a_buffer_that_the_loop_has_written_counts_too() -> None:
    loop = """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.module.update(x.cuda())
        """
    assert HOOK in written("x = x.float()", loop=loop).code


def test_buffers_that_ddp_did_not_send_are_not_sent() -> None:
    wrap = "model = DDP(Centred().cuda(), broadcast_buffers=False)"
    written("self.update(x)", wrap).silent("MG128")


def test_a_choice_of_the_person_is_left_to_them() -> None:
    wrap = "model = DDP(Centred().cuda(), broadcast_buffers=args.amp)"
    change = written("self.update(x)", wrap).said("MG128", "    self.mean = 0.9", Kind.TODO)
    assert "where args.amp is true" in change.message


def test_within_a_window_ddp_sent_them_once() -> None:
    loop = """
        for step, (x, y) in enumerate(train_loader):
            last = step % 4 == 3
            with contextlib.nullcontext() if last else model.no_sync():
                loss = F.cross_entropy(model(x.cuda()), y.cuda()) / 4
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        """
    migrated = written("self.update(x)", imports="import contextlib", loop=loop)
    assert "first forward of a window" in migrated.said("MG128", "    self.mean = 0.9", Kind.TODO).message
    assert HOOK not in migrated.code


def test_batch_norm_needs_no_word_where_all_buffers_are_sent() -> None:
    wrap = "model = nn.Sequential(nn.BatchNorm1d(32), Centred())\nmodel = DDP(model.cuda())"
    migrated = written("self.update(x)", wrap)
    migrated.silent("MG104")
    migrated.said("MG128", "model = DDP(", Kind.CONVERTED)
