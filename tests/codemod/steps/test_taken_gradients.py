"""torch.autograd.grad through the engine is marked; through the module, or of something else, it is left alone."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

LOOP = """
for x, y in train_loader:
    x.requires_grad_(True)
    LINES
    optimizer.zero_grad()
    F.cross_entropy(model(x.detach()), y).backward()
    optimizer.step()
"""


def _loop(*lines: str) -> str:
    return LOOP.replace("LINES", "\n    ".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("g = torch.autograd.grad(F.cross_entropy(model(x), y), x)[0]",),
        ("out = model(x)", "probe = F.cross_entropy(out, y)", "g, = torch.autograd.grad(probe, [x])"),
    ],
)
def test_gradients_taken_through_the_engine_are_marked(lines: tuple[str, ...]) -> None:
    migrated = convert(loop=_loop(*lines))
    migrated.said("MG413", "torch.autograd.grad", Kind.TODO)


def test_gradients_taken_in_a_helper_are_marked() -> None:
    helper = "def attack(net, x, y):\n    return torch.autograd.grad(F.cross_entropy(net(x), y), x)[0]\n\n\n"
    migrated = convert(helpers=helper, loop=_loop("g = attack(model, x, y)"))
    migrated.said("MG413", "torch.autograd.grad", Kind.TODO)


@pytest.mark.parametrize("output", ["model.module(x).sum()", "(x * x).sum()"])
def test_gradients_that_do_not_go_through_it_are_not(output: str) -> None:
    convert(loop=_loop(f"g = torch.autograd.grad({output}, x)[0]")).silent("MG413")
