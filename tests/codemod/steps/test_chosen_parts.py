"""Forwards that choose their parts by each rank's own random numbers: ZeRO 1 and 2 mix up the gradients."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    def drops(chance):
        return random.random() < chance


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
        "for i in random.sample(range(4), 2):\n    x = self.layers[i](x)",
        "for layer in random.sample(list(self.layers), 2):\n    x = layer(x)",
        LAYERS.replace("TEST", "drops(0.5)"),
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


CALLED = """
for x, y in train_loader:
    optimizer.zero_grad()
BODY
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
"""


THREE_WAYS = """
chance = random.random()
if chance < 0.3:
    out = model(x, 0)
elif chance < 0.6:
    out = model(x, 1)
else:
    out = model(x, 2)
"""
OUTPUT_OF = """
def output_of(net, x):
    if random.random() < 0.5:
        return net(x, wide=True)
    else:
        return net(x)
"""


def called(body: str, allows: str = UNUSED) -> Migrated:
    return convert(
        imports="import random\nimport numpy as np",
        helpers="def a_path():\n    return random.choice(['a', 'b'])",
        wrap=f"model = DDP(Net().cuda(){allows})",
        loop=CALLED.replace("BODY", indent(body.strip(), "    ")),
    )


@pytest.mark.parametrize(
    "body",
    [
        "if random.random() < 0.5:\n    out = model(x, wide=True)\nelse:\n    out = model(x)",
        "out = model(x, wide=True) if np.random.rand() < 0.5 else model(x)",
        "out = model(x, wide=random.random() < 0.5)",
        "wide = torch.rand(1).item() < 0.5\nout = model(x, wide)",
        "head = random.choice(['a', 'b'])\nout = model(x, head)",
        "out = model(x, head=np.random.randint(4))",
        "path = [random.randint(0, 3) for _ in range(8)]\nout = model(x, path)",
        "out = model(x, a_path())",
        "label = y\nif random.random() < 0.1:\n    label = None\nout = model(x, label)",
        THREE_WAYS,
    ],
)
def test_a_loop_that_chooses_by_chance_how_the_model_is_called_needs_stage_zero(body: str) -> None:
    migrated = called(body)
    assert any("how the model is called" in change.message for change in migrated.changes)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    ("body", "allows"),
    [
        ("out = model(x, wide=random.random() < 0.5)", ""),
        ("if random.random() < 0.5:\n    x = x.flip(-1)\nout = model(x)", UNUSED),
        ("if random.random() < 0.5:\n    out = model(x.flip(-1))\nelse:\n    out = model(x)", UNUSED),
        ("t = torch.randint(0, 1000, (x.shape[0],))\nout = model(x, t)", UNUSED),
        ("mask = torch.rand(x.shape) < 0.5\nout = model(x, mask)", UNUSED),
        ("scale = random.uniform(0.5, 1.0)\nout = model(x, scale)", UNUSED),
        ("out = model(x + np.random.rand())", UNUSED),
    ],
)
def test_random_inputs_are_no_choice_of_parts(body: str, allows: str) -> None:
    assert called(body, allows).config["zero_optimization"] == {"stage": 2}


def test_a_choice_in_a_function_that_the_loop_calls_counts() -> None:
    migrated = convert(
        imports="import random",
        helpers=OUTPUT_OF,
        wrap=f"model = DDP(Net().cuda(){UNUSED})",
        loop=CALLED.replace("BODY", "    out = output_of(model, x)"),
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}
