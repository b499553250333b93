"""Weights that are reached through a call or a choice which takes the model out of its wrapper where it stands."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.test_weight_writes import with_line

HELPERS = """
    def unwrap(net):
        if hasattr(net, "module"):
            return net.module
        return net


    def constrain(layer):
        layer.weight.data.clamp_(-1, 1)
    """
CHOICE = 'model.module if hasattr(model, "module") else model'


@pytest.mark.parametrize("model", ["unwrap(model)", f"({CHOICE})", "(getattr(model, 'module', None) or model)"])
@pytest.mark.parametrize(
    "line",
    [
        "{}.head.weight.clamp_(-1, 1)",
        "{}.head.weight.data.clamp_(-1, 1)",
        "{}.head.weight.data = torch.clamp({}.head.weight, -1, 1)",
        "{}.head.bias[0] = 0.0",
        "torch.nn.init.zeros_({}.head.bias)",
        "{}.head.reset_parameters()",
        "for p in {}.parameters(): p.data.clamp_(-1, 1)",
    ],
)
def test_a_write_through_an_unwrapping_expression_needs_stage_zero(line: str, model: str) -> None:
    written = line.format(model, model)
    migrated = convert(**with_line(written, helpers=HELPERS))
    migrated.said("MG509", written.rpartition("(): ")[2], Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


def test_a_part_that_is_handed_on_is_written_to() -> None:
    migrated = convert(**with_line("constrain(unwrap(model).head)", helpers=HELPERS))
    migrated.said("MG509", "layer.weight.data.clamp_(-1, 1)", Kind.KEPT)


def test_freezing_and_loading_a_part_of_it() -> None:
    frozen = convert(**with_line("unwrap(model).head.requires_grad_(epoch > 3)", helpers=HELPERS))
    frozen.said("MG607", "unwrap(model).head.requires_grad_", Kind.KEPT)
    loaded = convert(**with_line('unwrap(model).head.load_state_dict(torch.load("h.pt"))', helpers=HELPERS))
    loaded.said("MG625", "unwrap(model).head.load_state_dict", Kind.TODO)


@pytest.mark.parametrize("line", ["unwrap(teacher).head.weight.clamp_(-1, 1)", "unwrap(model).running_mean.zero_()"])
def test_another_model_and_a_buffer_are_no_weights(line: str) -> None:
    teacher = "teacher = torch.nn.Sequential()"
    migrated = convert(**with_line(line, helpers=HELPERS, resume=teacher))
    assert migrated.config["zero_optimization"]["stage"] == 2
