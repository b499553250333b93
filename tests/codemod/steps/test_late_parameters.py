"""Parameters that a forward makes, when the engine is there already."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    class Grown(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)
            self.proj = None

        def build(self, x):
            {build}

        def forward(self, x):
    {body}
            return self.head(x)
    """


def grown(body: str, build: str = "pass", **parts: str) -> Migrated:
    net = dedent(NET).format(body=indent(body, " " * 8), build=build)
    return convert(helpers=net, imports="from torch import nn", **{"wrap": "model = DDP(Grown().cuda())", **parts})


@pytest.mark.parametrize(
    ("line", "build"),
    [
        ("self.proj = nn.Linear(x.shape[1], 64).to(x.device)", "pass"),
        ("self.proj = nn.Parameter(torch.randn(8))", "pass"),
        ('self.register_parameter("scale", nn.Parameter(torch.ones(1)))', "pass"),
        ('self.add_module("proj", nn.Linear(x.shape[1], 64))', "pass"),
        ("self.proj = nn.Sequential(nn.Linear(8, 8), nn.ReLU())", "pass"),
        ("self.proj = nn.RMSNorm(x.shape[1])", "pass"),
        ("self.proj = nn.TransformerEncoderLayer(x.shape[1], 4)", "pass"),
        ("self.proj = nn.GRUCell(x.shape[1], 8)", "pass"),
        ("self.build(x)", "self.proj = nn.Linear(x.shape[1], 64)"),
    ],
)
def test_what_the_first_forward_makes_is_marked(line: str, build: str) -> None:
    migrated = grown(f"if self.proj is None:\n    {line}", build)
    migrated.said("MG519", line if build == "pass" else build, Kind.TODO)


@pytest.mark.parametrize(
    "line",
    [
        "self.mask = torch.zeros(8)",
        "self.proj = nn.Parameter(torch.randn(8), requires_grad=False)",
        "self.up = nn.Upsample(scale_factor=2)",
        "self.shape = shape_of(nn.Linear(8, 8))",
        "proj = nn.Linear(8, 8)",
    ],
)
def test_what_is_no_trained_part_of_the_model_is_not(line: str) -> None:
    grown(line).silent("MG519")


def test_a_method_that_no_forward_calls_is_not() -> None:
    grown("pass", "self.head = nn.Linear(8, 3)").silent("MG519")


def test_a_forward_in_front_of_the_wrap_makes_them_in_time() -> None:
    wrap = "net = Grown().cuda()\nnet(torch.zeros(1, 8).cuda())\nmodel = DDP(net)"
    grown("if self.proj is None:\n    self.proj = nn.Linear(8, 64)", wrap=wrap).silent("MG519")
