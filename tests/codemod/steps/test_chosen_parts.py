"""Forwards that choose their parts by each rank's own random numbers: ZeRO 1 and 2 mix up the gradients."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])
            self.head = nn.Linear(32, 10)

        def forward(self, x):
    BODY
            return self.head(x)


    """
UNUSED = ", find_unused_parameters=True"


def chosen(body: str, allows: str = UNUSED) -> Migrated:
    net = NET.replace("    BODY", indent(body, " " * 12))
    return convert(
        imports="import random\nimport numpy as np", helpers=dedent(net), wrap=f"model = DDP(Parts().cuda(){allows})"
    )


LAYERS = "for layer in self.layers:\n    if TEST:\n        continue\n    x = layer(x)"
SKIP = "skip = random.randrange(4)\nfor i, layer in enumerate(self.layers):\n    if i != skip:\n        x = layer(x)"


@pytest.mark.parametrize(
    "body",
    [
        LAYERS.replace("TEST", "self.training and random.random() < 0.5"),
        "drop = torch.rand([])\n" + LAYERS.replace("TEST", "self.training and drop < 0.5"),
        LAYERS.replace("TEST", "np.random.uniform(0, 1) < 0.5"),
        SKIP,
        "if torch.rand(1).item() < 0.5:\n    x = self.layers[0](x)",
        "if torch.rand(1).item() < 0.5:\n    return x",
        "x = self.layers[random.randrange(4)](x)",
        "x = random.choice(self.layers)(x)",
        "x = self.layers[0](x) if random.random() < 0.5 else x",
    ],
)
def test_parts_that_each_rank_chooses_by_itself_need_stage_zero(body: str) -> None:
    migrated = chosen(body)
    found = [change for change in migrated.changes if change.code == "MG110" and "stage 0" in change.message]
    assert any(
        change.message.startswith("random numbers of each rank") and change.kind is Kind.KEPT for change in found
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    ("body", "allows"),
    [
        (SKIP, ""),
        (LAYERS.replace("TEST", "layer is None"), UNUSED),
        ("if random.random() < 0.5:\n    x = x.flip(-1)", UNUSED),
        ("x = self.layers[0](x) + torch.rand(1).item()", UNUSED),
    ],
)
def test_parts_that_are_the_same_on_all_ranks_keep_the_stage(body: str, allows: str) -> None:
    assert chosen(body, allows).config["zero_optimization"] == {"stage": 2}


def test_what_differs_by_rank_is_spoken_of_wherever_parameters_may_be_unused() -> None:
    for allows in (UNUSED, ", **args.ddp"):
        migrated = chosen("pass", allows)
        assert "average gradients of different layers" in migrated.said("MG110", "model = DDP(", Kind.KEPT).message
