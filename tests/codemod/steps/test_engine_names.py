"""Attributes of the wrapped model that the engine has under the same name."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert


@pytest.mark.parametrize(
    "line",
    [
        "model.lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)",
        "model.optimizer = optimizer",
        "model.losses = []",
        "model.global_steps = 0",
    ],
)
def test_an_attribute_that_the_engine_uses_itself_is_marked(line: str) -> None:
    migrated = convert(resume=line)
    told = migrated.said("MG512", line, Kind.TODO)
    assert told.message.startswith(f"{line.partition(' =')[0]} is an attribute that the engine has")


def test_a_counter_that_a_function_moves_is_marked() -> None:
    helpers = """
        def count(net):
            net.global_steps += 1
        """
    convert(helpers=helpers, end="count(model)").said("MG512", "net.global_steps += 1", Kind.TODO)


@pytest.mark.parametrize("line", ["model.names = ['a']", "model.module.losses = []", "args.optimizer = optimizer"])
def test_other_attributes_have_nothing_to_say(line: str) -> None:
    convert(resume=line).silent("MG512")


def test_the_plain_model_s_attributes_are_its_own() -> None:
    convert(wrap="model = Net().cuda()\nmodel.losses = []\nmodel = DDP(model)").silent("MG512")
