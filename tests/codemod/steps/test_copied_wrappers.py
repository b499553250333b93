"""Copies and averages of the wrapper: those of the plain model now, with one ``.module`` less."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

AVERAGED = "from torch.optim.swa_utils import AveragedModel"
WRAPPED = "model = DDP(Net().cuda())\n"


@pytest.mark.parametrize("place", ["wrap", "resume"])
@pytest.mark.parametrize(
    ("made", "before", "after"),
    [
        ("AveragedModel(model)", "ema.module.module.state_dict()", "ema.module.state_dict()"),
        ("AveragedModel(model)", "ema.module.state_dict()", 'torch.nn.ModuleDict({"module": ema.module}).state_dict()'),
        ("copy.deepcopy(model)", "ema.module.state_dict()", "ema.state_dict()"),
        ("copy.deepcopy(model)", "ema.state_dict()", 'torch.nn.ModuleDict({"module": ema}).state_dict()'),
        ("copy.deepcopy(model)", "ema.module.head.weight", "ema.head.weight"),
    ],
)
def test_one_module_less_leads_to_the_copy(place: str, made: str, before: str, after: str) -> None:
    text, end = f"ema = {made}", f"torch.save({before}, 'ema.pt')"
    if place == "wrap":
        migrated = convert(imports=AVERAGED, wrap=WRAPPED + text, end=end)
    else:
        migrated = convert(imports=AVERAGED, resume=text, end=end)
    assert migrated.section("end") == f"torch.save({after}, 'ema.pt')\n"


def test_a_copy_is_followed_into_a_helper() -> None:
    migrated = convert(
        helpers="def keep(net):\n    torch.save(net.module.state_dict(), 'best.pt')",
        wrap=WRAPPED + "best = copy.deepcopy(model)",
        end="keep(best)",
    )
    assert "torch.save(net.state_dict(), 'best.pt')" in migrated.section("helpers")


def test_names_of_an_averaging_object_are_told() -> None:
    migrated = convert(
        imports=AVERAGED, wrap=WRAPPED + "ema = AveragedModel(model)", end="torch.save(ema.state_dict(), 'ema.pt')"
    )
    assert migrated.section("end") == "torch.save(ema.state_dict(), 'ema.pt')\n"
    migrated.said("MG508", "ema.state_dict()", Kind.KEPT)


@pytest.mark.parametrize(
    "wrap",
    [
        "model = Net().cuda()\nema = AveragedModel(model)\nmodel = DDP(model)",
        "model = DDP(Net().cuda())\nema = AveragedModel(model.module)",
    ],
)
def test_an_average_of_the_plain_model_stays(wrap: str) -> None:
    end = "torch.save(ema.module.state_dict(), 'ema.pt')\nprint(ema.state_dict())\n"
    migrated = convert(imports=AVERAGED, wrap=wrap, end=end)
    assert migrated.section("end") == end
    migrated.silent("MG508")


def test_a_variable_that_may_hold_another_model_stays() -> None:
    migrated = convert(
        wrap=WRAPPED + "ema = copy.deepcopy(model)\nif args.amp:\n    ema = torch.load('other.pt')",
        end="print(ema.module)",
    )
    assert migrated.section("end") == "print(ema.module)\n"
