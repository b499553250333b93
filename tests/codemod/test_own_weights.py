"""MG509: models that write to their own parameters, at ZeRO stage 3."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

MODEL = """
    class Contrast({base}):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(32, 32), nn.Linear(32, 32)
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.data.copy_(a.data)

        @torch.no_grad()
        def update(self):
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                {body}

        def forward(self, x):
            self.update()
            return self.q(x)
    """
WRAP = "model = DDP(Contrast().cuda())"


def marked(body: str, base: str = "nn.Module", stage: int = 3) -> list[str]:
    migrated = convert(helpers=MODEL.format(base=base, body=body), wrap=WRAP, to={"zero_stage": stage})
    lines = migrated.before.splitlines()
    return [
        lines[change.line - 1].strip()
        for change in migrated.changes
        if change.code == "MG509" and change.kind is Kind.TODO and "modifier_rank" in change.message
    ]


@pytest.mark.parametrize(
    "body",
    [
        "b.data = b.data * 0.9 + a.data * 0.1",
        "b.data.mul_(0.9).add_(a.data, alpha=0.1)",
        "b.data *= 0.9",
        "b.copy_(a)",
        "b.data.copy_(a.data)",
    ],
)
def test_a_model_that_moves_its_own_parameters_is_marked_at_stage_3_alone(body: str) -> None:
    assert marked(body) == [body]
    assert marked(body, base="torch.nn.Module") == [body]
    assert marked(body, stage=2) == []


@pytest.mark.parametrize("body", ["b.requires_grad = False", "print(b.norm())", "a.grad = None"])
def test_a_loop_that_writes_no_weights_is_not_marked(body: str) -> None:
    assert marked(body) == []


def test_a_class_that_is_no_module_is_not_marked() -> None:
    assert marked("b.data = a.data", base="object") == []
