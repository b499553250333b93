"""Copies of the weights between the wrap, where DDP sent rank 0's to all ranks, and the engine further down."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

SENT = "    torch.distributed.broadcast(tensor.data, src=0)\n"
HELPERS = """
    def fill(source, target):
        for p, q in zip(source.parameters(), target.parameters()):
            q.data.copy_(p.data)


    def follow(source, target, decay):
        theirs = dict(source.named_parameters())
        for name, q in target.named_parameters():
            q.data.mul_(decay).add_(theirs[name].data, alpha=1 - decay)


    class Shadow:
        def __init__(self, net):
            self.kept = {}
            for name, p in net.named_parameters():
                self.kept[name] = p.data.clone()


    def wrapped(net):
        return DDP(net)


    def chosen(net):
        return net.module if hasattr(net, "module") else net
    """
LINES = [
    "for p, q in zip(model.parameters(), twin.parameters()): q.data.copy_(p.data)",
    "for p, q in zip(model.module.parameters(), twin.parameters()): q.data = p.data",
    "fill(model, twin)",
    "follow(model.module, twin, 0)",
    "follow(chosen(model), twin, 0)",
    "shadow = Shadow(model)",
    "twin.load_state_dict(chosen(model).state_dict())",
]


@pytest.mark.parametrize("line", LINES)
def test_rank_0s_weights_are_sent_in_the_place_of_the_wrap(line: str) -> None:
    migrated = convert(helpers=HELPERS, wrap=f"model = Net().cuda()\ntwin = Net().cuda()\nmodel = DDP(model)\n{line}")
    migrated.said("MG109", "model = DDP(", Kind.CONVERTED)
    assert f"twin = Net().cuda()\nfor tensor in model.state_dict().values():\n{SENT}" in migrated.section("wrap")


def test_a_wrap_that_a_function_returns() -> None:
    migrated = convert(
        helpers=HELPERS, wrap="twin = Net().cuda()\nmodel = wrapped(Net().cuda())\nfill(model.module, twin)"
    )
    assert f"    for tensor in net.state_dict().values():\n    {SENT}    return net\n" in migrated.code


def test_a_wrap_that_depends_on_a_flag() -> None:
    wrap = "model = Net().cuda()\ntwin = Net().cuda()\nmodel = DDP(model) if args.amp else model\nfill(model, twin)"
    migrated = convert(helpers=HELPERS, wrap=wrap)
    assert f"if args.amp:\n    for tensor in model.state_dict().values():\n    {SENT}" in migrated.section("wrap")


@pytest.mark.parametrize(
    "wrap",
    [
        "fill(model, twin)\nmodel = DDP(model)",
        "model = DDP(model)\nfill(twin, other)",
        "model = DDP(model)\nsize = sum(p.numel() for p in model.parameters())",
    ],
)
def test_nothing_is_sent_where_no_weights_are_taken_between(wrap: str) -> None:
    made = "model, twin, other = Net().cuda(), Net().cuda(), Net().cuda()\n"
    assert "for tensor in" not in convert(helpers=HELPERS, wrap=made + wrap).code


def test_a_copy_behind_the_engine_needs_nothing() -> None:
    migrated = convert(
        helpers=HELPERS, wrap="twin = Net().cuda()\nmodel = DDP(Net().cuda())", resume="fill(model, twin)"
    )
    assert "for tensor in" not in migrated.code
