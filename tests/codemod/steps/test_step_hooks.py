"""What runs within the optimizer's step sees whole weights of the moment at ZeRO 0 only."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
def follow(*_):
    return None


class Counting(torch.optim.SGD):
    def __init__(self, params, lr):
        super().__init__(params, lr=lr)
        self.step_count = 0
"""
IMPORTS = """
import types
from torch.optim import SGD
from torch.optim.optimizer import register_optimizer_step_post_hook
"""


def _with(text: str, **options: object) -> Migrated:
    made = "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)\nstep = optimizer.step\n"
    return convert(helpers=HELPERS, imports=IMPORTS, optimizer=made + text, to=dict(options))


@pytest.mark.parametrize(
    "text",
    [
        "optimizer.register_step_post_hook(follow)",
        "handle = optimizer.register_step_pre_hook(lambda *_: None)",
        "register_optimizer_step_post_hook(follow)",
        "torch.optim.optimizer.register_optimizer_step_pre_hook(follow)",
        "optimizer.step = follow",
        "optimizer.step = types.MethodType(follow, optimizer)",
        "setattr(optimizer, 'step', follow)",
        "SGD.step = follow",
        "torch.optim.SGD.step = follow",
    ],
)
def test_a_step_with_a_hook_gets_stage_zero(text: str) -> None:
    migrated = _with(text)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG520", text, Kind.KEPT)


@pytest.mark.parametrize(
    "text",
    [
        "optimizer.step_count = 0",
        "args.step = 3",
        "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nscheduler.step = follow",
        "model.register_forward_hook(follow)",
        "other = torch.optim.lr_scheduler\nother.step = 1",
    ],
)
def test_other_steps_and_hooks_are_none_of_its(text: str) -> None:
    _with(text).silent("MG520")


def test_a_hook_is_marked_where_a_stage_is_asked_for() -> None:
    _with("optimizer.register_step_post_hook(follow)", zero_stage=1).said("MG520", "_post_hook(follow)", Kind.TODO)
