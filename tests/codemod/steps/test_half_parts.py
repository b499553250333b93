"""A part of the trained model that is loaded or cast in half precision: ZeRO stage 0, as for the whole model."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

_HEAD = """
from transformers import AutoModel


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        {inner}


class Outer(nn.Module):
    def __init__(self, body=None):
        super().__init__()
        self.inner = Inner()
        {outer}
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))
"""


def made(*lines: str, outer: str = "self.body = body", inner: str = "pass") -> Migrated:
    wrap = "\n".join([*lines, "model = DDP(net)", ""])
    return convert(imports=_HEAD.format(outer=outer, inner=inner), wrap=wrap)


_LOAD = 'AutoModel.from_pretrained("b", torch_dtype=torch.bfloat16)'
_CHOSEN = 'AutoModel.from_pretrained("b", torch_dtype=kind)'


@pytest.mark.parametrize(
    "lines",
    [
        (f"body = {_LOAD}", "net = Outer(body)"),
        (f"net = Outer(body={_LOAD})",),
        (f"body = {_LOAD}", "net = nn.Sequential(body, nn.Linear(8, 1))"),
        ("kind = torch.half if args.amp else torch.float32", f"body = {_CHOSEN}", "net = Outer(body)"),
        ("body = nn.Linear(8, 8).to(torch.bfloat16)", "net = Outer(body)"),
        ("net = Outer(Inner().half())",),
        ("net = Outer(Inner())", "net.body.half()"),
        ("net = Outer(Inner())", "net.body.to(torch.bfloat16)"),
    ],
)  # fmt: skip
def test_a_half_part_that_the_model_is_made_of_gets_stage_zero(lines: tuple[str, ...]) -> None:
    migrated = made(*lines)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert any(change.code == "MG311" and change.kind is Kind.KEPT for change in migrated.changes)


@pytest.mark.parametrize("where", ["outer", "inner"])
@pytest.mark.parametrize(
    "value",
    [
        _LOAD,
        "nn.Linear(8, 8).to(torch.float16)",
        "nn.Linear(8, 8).bfloat16()",
        "nn.Linear(8, 8, dtype=torch.bfloat16)",
        "nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8, dtype=torch.half))",
        "nn.ModuleList([nn.Linear(8, 8).half()])",
        "nn.Parameter(torch.zeros(8, dtype=torch.bfloat16))",
    ],
)
def test_a_half_part_that_the_constructor_makes_gets_stage_zero(where: str, value: str) -> None:
    migrated = made("net = Outer()", **{where: f"self.body = {value}"})
    migrated.said("MG311", value, Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    "lines",
    [
        ('body = AutoModel.from_pretrained("b", torch_dtype=torch.float32)', "net = Outer(body)"),
        (f"body = {_LOAD}.float()", "net = Outer(body)"),
        (f"body = {_LOAD}", "net = Outer(body)", "net.float()"),
        (f"judge = {_LOAD}", "net = Outer(Inner())"),
        ("net = Outer(Inner())", "mask = torch.ones(8).to(torch.bfloat16)"),
        ("net = Outer(nn.Linear(8, 8, dtype=torch.float32))",),
        ("net = Outer(nn.Linear(8, 8, dtype=args.kind))",),
    ],
)
def test_what_is_no_half_part_of_the_model_keeps_its_stage(lines: tuple[str, ...]) -> None:
    assert made(*lines).config["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(
    "line", ["model = DDP(Outer())", "model = DDP(Outer().cuda())", "net = Outer().cuda()\nmodel = DDP(net)"]
)
def test_the_class_of_a_model_that_is_wrapped_as_it_is_made_is_known(line: str) -> None:
    parts = _HEAD.format(outer=f"self.body = {_LOAD}", inner="pass")
    assert convert(imports=parts, wrap=f"{line}\n").config["zero_optimization"] == {"stage": 0}


def test_a_tensor_that_the_constructor_keeps_is_no_weight() -> None:
    migrated = made("net = Outer(Inner())", inner="self.mask = torch.ones(8, dtype=torch.bfloat16)")
    assert migrated.config["zero_optimization"] == {"stage": 2}
