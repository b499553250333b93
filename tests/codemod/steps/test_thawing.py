"""Parameters that a model freezes or thaws by its own methods: ZeRO 1-3 partition what trains once."""

from __future__ import annotations

from textwrap import indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    class Staged(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(32, 32)
            self.head = nn.Linear(32, 10)
    BEGIN

        def freeze(self):
            for p in self.head.parameters():
                p.requires_grad = False

        def switch(self, on=True):
    SWITCH

        def forward(self, x):
            return self.head(self.body(x))


    def build():
        return Staged()


    """


def staged(end: str, switch: str = "pass", begin: str = "pass", wrap: str = "Staged()") -> Migrated:
    helpers = NET.replace("    BEGIN", indent(begin, " " * 12)).replace("    SWITCH", indent(switch, " " * 12))
    return convert(helpers=helpers, wrap=f"model = {wrap}.cuda()\nmodel = DDP(model)", end=end)


THAW = "for p in self.head.parameters(): p.requires_grad = on"


@pytest.mark.parametrize("made", ["Staged()", "build()"])
@pytest.mark.parametrize(
    "line",
    [
        THAW,
        "self.head.requires_grad_(on)",
        "self.head.bias.requires_grad = True",
        "for p in list(self.parameters()): p.requires_grad = on",
        "for m in [self.body, self.head]:\n    for p in m.parameters(): p.requires_grad = on",
        "for i, (name, p) in enumerate(self.named_parameters()): p.requires_grad_(i > 2)",
    ],
)
def test_a_model_that_thaws_its_own_parts_needs_stage_zero(line: str, made: str) -> None:
    migrated = staged("model.module.switch()", line, wrap=made)
    migrated.said("MG607", line.rpartition("\n")[2], Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    ("end", "switch", "begin"),
    [
        ("pass", THAW, "pass"),
        ("pass", THAW, "self.switch(False)"),
        ("model.module.freeze()", "pass", "self.freeze()"),
        ("model.module.switch()", "self.x = torch.zeros(3)\nself.x.requires_grad = True", "pass"),
        ("model.module.switch()", "self.head.weight.detach().requires_grad_()", "pass"),
        ("model.module.switch()", "x = torch.zeros(3)\nx.requires_grad = True", "pass"),
    ],
)
def test_what_was_so_from_the_beginning_is_right(end: str, switch: str, begin: str) -> None:
    staged(end, switch, begin).silent("MG607")


def test_a_part_that_is_frozen_later_is_told() -> None:
    staged("model.module.freeze()").said("MG607", "p.requires_grad = False", Kind.KEPT)
