"""Functions that freeze or thaw the module that they are handed."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(32, 32)
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            return self.head(self.body(x))


    """
SWITCH = "def switch(part, on):\n    for p in part.parameters():\n        p.requires_grad = on\n"
FREEZE = "def freeze(part):\n    for p in part.parameters():\n        p.requires_grad = False\n"
LISTED = (
    "def switch(parts, on=False):\n    if not isinstance(parts, list):\n        parts = [parts]\n"
    "    for part in parts:\n        for p in part.parameters():\n            p.requires_grad_(on)\n"
)
TWICE = SWITCH + "\n\ndef thaw(net):\n    switch(net.body, True)\n"


def helped(helpers: str, end: str, start: str = "pass") -> Migrated:
    return convert(helpers=dedent(NET) + helpers, wrap=f"net = Parts().cuda()\n{start}\nmodel = DDP(net)", end=end)


@pytest.mark.parametrize(
    ("helpers", "end", "start"),
    [
        (SWITCH, "switch(model.module.body, True)", "switch(net.body, False)"),
        (SWITCH, "switch(net.body, True)", "switch(net.body, False)"),
        (SWITCH, "switch(model.module.body, on=False)", "pass"),
        (SWITCH.replace(" = on", "_(on)"), "switch(model.module.body, True)", "switch(net.body, False)"),
        (SWITCH.replace("p in part.p", "_, p in part.named_p"), "switch(model.module.body, epoch > 1)", "pass"),
        (LISTED, "switch([model.module.body, model.module.head], True)", "pass"),
        (TWICE, "thaw(model.module)", "switch(net.body, False)"),
        (FREEZE, "freeze(model.module.body)", "pass"),
        (FREEZE, "freeze(model.module.body)", "freeze(net.head)"),
    ],
)
def test_a_part_that_is_switched_by_a_function_needs_stage_zero(helpers: str, end: str, start: str) -> None:
    migrated = helped(helpers, end, start)
    assert [change for change in migrated.changes if change.code == "MG607" and change.kind is Kind.KEPT]
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    ("helpers", "end", "start"),
    [
        (SWITCH, "pass", "switch(net.body, False)"),
        (FREEZE, "pass", "freeze(net.body)"),
        (FREEZE, "freeze(model.module.body)", "freeze(net.body)"),
        (SWITCH, "switch(model.module.body, False)", "switch(net.body, False)"),
        (SWITCH, "switch(nn.Linear(3, 3), False)", "pass"),
        (SWITCH, "teacher = copy.deepcopy(model.module)\nswitch(teacher, False)", "pass"),
    ],
)
def test_what_is_frozen_from_the_beginning_or_is_no_part_is_right(helpers: str, end: str, start: str) -> None:
    helped(helpers, end, start).silent("MG607")
