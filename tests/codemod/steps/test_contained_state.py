"""MG627: optimizer state that is saved or loaded by way of a container; whole at ZeRO stage 0 only."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.trainer_scripts import TRAINS

KEEPER = """
class Keeper:
    def __init__(self, **parts):
        self.parts = parts

    def save(self, path):
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, path)
"""
REGISTER = """
class Keeper:
    def __init__(self):
        self.parts = {}

    def add(self, name, part):
        self.parts[name] = part

    def save(self, path):
        state = {}
        for name in self.parts:
            state[name] = self.parts[name].state_dict()
        torch.save(state, path)
"""
SETTER = """
class Keeper:
    def __init__(self, **parts):
        for name, part in parts.items():
            setattr(self, name, part)

    def save(self, path):
        torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict()}, path)
"""
LOAD = """
state = torch.load("a.pt")
parts = {"opt": optimizer}
for name, part in parts.items():
    part.load_state_dict(state[name])
"""


def ended(text: str, helpers: str = "", **options: int) -> Migrated:
    return convert(end=text, helpers=helpers, to=dict(options))


def check_stage_zero(migrated: Migrated, line: str) -> None:
    assert migrated.config["zero_optimization"] == {"stage": 0}, migrated.told()
    migrated.said("MG627", line, Kind.KEPT)


@pytest.mark.parametrize(
    "text",
    [
        'parts = {"net": model, "opt": optimizer}\ntorch.save({k: v.state_dict() for k, v in parts.items()}, "a.pt")',
        'parts = {"net": model}\nparts["opt"] = optimizer\nfor k in parts:\n    torch.save(parts[k].state_dict(), k)',
        'parts = dict(net=model, opt=optimizer)\nfor k in parts:\n    torch.save(parts[k].state_dict(), k + ".pt")',
        'for k, v in zip(["net", "opt"], [model, optimizer]):\n    torch.save(v.state_dict(), k)',
        'for i, v in enumerate((model, optimizer)):\n    torch.save(v.state_dict(), f"{i}.pt")',
        'parts = []\nparts.append(optimizer)\ntorch.save([v.state_dict() for v in parts], "a.pt")',
        'for k, v in locals().items():\n    if hasattr(v, "zero_grad"):\n        torch.save(v.state_dict(), k)',
    ],
)
def test_a_container_of_the_optimizer_gets_stage_zero(text: str) -> None:
    check_stage_zero(ended(text), "state_dict()")


def test_loads_through_a_container_count_too() -> None:
    check_stage_zero(convert(resume=LOAD), "part.load_state_dict")


def test_an_object_that_is_given_the_optimizer_is_a_container() -> None:
    check_stage_zero(ended('Keeper(net=model, opt=optimizer).save("a.pt")', KEEPER), "part.state_dict() for")
    check_stage_zero(ended('Keeper(net=model, opt=optimizer).save("a.pt")', SETTER), "self.opt.state_dict()")
    given = SETTER.replace("for name, part in parts.items():", "self.__dict__.update(parts)").replace(
        "    setattr(self, name, part)", ""
    )
    check_stage_zero(ended('Keeper(net=model, opt=optimizer).save("a.pt")', given), "self.opt.state_dict()")
    added = 'keeper = Keeper()\nkeeper.add("opt", optimizer)\nkeeper.save("a.pt")'
    check_stage_zero(ended(added, REGISTER), "self.parts[name].state_dict()")


@pytest.mark.parametrize(
    "text",
    [
        'parts = {"net": model}\ntorch.save({k: v.state_dict() for k, v in parts.items()}, "a.pt")',
        'for v in (model, optimizer):\n    if isinstance(v, nn.Module):\n        torch.save(v.state_dict(), "net.pt")',
        's = torch.optim.lr_scheduler.StepLR(optimizer, 1)\nfor v in [s]:\n    torch.save(v.state_dict(), "s.pt")',
        'for m, o in zip([model], [optimizer]):\n    torch.save(m.state_dict(), "net.pt")',
        'torch.save(make(optimizer).state_dict(), "other.pt")',
    ],
)
def test_what_holds_no_optimizer_keeps_the_stage(text: str) -> None:
    migrated = ended(text)
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG627")


def test_a_stage_that_is_asked_for_is_marked() -> None:
    text = 'parts = {"opt": optimizer}\ntorch.save({k: v.state_dict() for k, v in parts.items()}, "a.pt")'
    ended(text, zero_stage=2).said("MG627", "v.state_dict()", Kind.TODO)


def test_a_load_beside_a_converted_save_is_marked() -> None:
    save = 'torch.save({"net": model.module.state_dict(), "opt": optimizer.state_dict()}, "a.pt")'
    convert(resume=LOAD, end=save).said("MG626", "part.load_state_dict", Kind.TODO)


TRAINER = f"""{TRAINS}
    def save(self, names):
        for name in NAMES:
            torch.save(getattr(self, name).state_dict(), name)
"""


@pytest.mark.parametrize(
    ("names", "stage"),
    [('["model", "optimizer"]', 0), ('["model"]', 2), ("names", 0)],
)
def test_attributes_that_are_asked_for_by_a_text(names: str, stage: int) -> None:
    migrated = convert(
        helpers=TRAINER.replace("NAMES", names), wrap="trainer = Trainer(Net().cuda(), args)", optimizer="",
        loop="trainer.train(train_loader)\ntrainer.save(args.names)",
        options='parser.add_argument("--names", nargs="+")',
    )  # fmt: skip
    assert migrated.config["zero_optimization"] == {"stage": stage}, migrated.told()
