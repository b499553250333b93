"""MG311: complex parameters, whose imaginary parts ZeRO 1-3 would drop."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.steps.complex_weights import has_complex
from tests.codemod.checks import Migrated, convert


def filtered(parameter: str, **to: object) -> Migrated:
    helpers = (
        "class Filter(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.weight = nn.Parameter({parameter})\n\n"
        "    def forward(self, x):\n        return torch.fft.irfft(torch.fft.rfft(x) * self.weight)\n"
    )
    return convert(helpers=helpers, wrap="model = DDP(nn.Sequential(Filter(), Net()).cuda())", to=dict(to))


@pytest.mark.parametrize(
    "parameter",
    [
        "torch.randn(9, dtype=torch.cfloat)",
        "0.1 * torch.rand(\n            9, 9, dtype=torch.complex64\n        )",
        "torch.complex(torch.randn(9), torch.zeros(9))",
        "torch.view_as_complex(torch.randn(9, 2))",
    ],
)
def test_complex_parameters_are_marked(parameter: str) -> None:
    migrated = filtered(parameter)
    migrated.said("MG311", "model = DDP(", Kind.TODO)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_stage_that_is_asked_for_is_kept() -> None:
    migrated = filtered("torch.randn(9, dtype=torch.cfloat)", zero_stage=2)
    migrated.said("MG311", "model = DDP(", Kind.TODO)
    assert migrated.config["zero_optimization"]["stage"] == 2


def test_half_precision_of_the_engine_is_no_way_for_them_either() -> None:
    migrated = filtered("torch.randn(9, dtype=torch.cfloat)", precision="bf16")
    migrated.said("MG311", "model = DDP(", Kind.TODO)
    assert migrated.config["zero_optimization"]["stage"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "w = torch.randn(9, dtype=torch.cfloat)\nself.w = nn.Parameter(w)",
        "self.mix = nn.Linear(8, 8, dtype=torch.cfloat)",
        "from neuralop.models import FNO",
    ],
)
def test_variables_layers_and_libraries(text: str) -> None:
    assert has_complex(text)


@pytest.mark.parametrize(
    "text",
    [
        "self.w = nn.Parameter(torch.randn(9, 2))\nw = torch.view_as_complex(self.w)",
        "self.w = nn.Parameter(torch.view_as_real(torch.randn(9, dtype=torch.cfloat)))",
        "freqs = torch.polar(ones, angles)\nself.register_buffer('freqs', freqs)\nself.w = nn.Parameter(ones)",
        "self.f = nn.Parameter(torch.polar(ones, angles), requires_grad=False)",
        "x = x.type(torch.complex64)\nself.scale = nn.Parameter(torch.ones(8))",
    ],
)
def test_real_parameters_are_not(text: str) -> None:
    assert not has_complex(text)
