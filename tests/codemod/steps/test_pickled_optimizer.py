"""MG631: the optimizer itself in a file, or an object that holds it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.trainer_scripts import TRAINS

TRAINER = f"""{TRAINS}
    def save(self):
        torch.save(SAVED, "a.pt")
"""


@pytest.mark.parametrize("stage", [0, 2])
@pytest.mark.parametrize(
    "text",
    [
        'torch.save({"model": model.module, "optimizer": optimizer, "epoch": 1}, "a.pt")',
        'state = dict(epoch=1)\nstate["optimizer"] = optimizer\ntorch.save(state, "a.pt")',
        'torch.save((model.module.state_dict(), optimizer), "a.pt")',
        'torch.save(optimizer, "a.pt")',
    ],
)
def test_the_optimizer_in_a_file_is_marked(text: str, stage: int) -> None:
    convert(end=text, to={"zero_stage": stage}).said("MG631", "torch.save(", Kind.TODO)


@pytest.mark.parametrize("saved", ["self", '{"trainer": self}', "self.__dict__", "self.optimizer"])
def test_an_object_that_holds_it_is_marked(saved: str) -> None:
    migrated = convert(
        helpers=TRAINER.replace("SAVED", saved), wrap="trainer = Trainer(Net().cuda(), args)", optimizer="",
        loop="trainer.train(train_loader)\ntrainer.save()",
    )  # fmt: skip
    migrated.said("MG631", "torch.save(", Kind.TODO)


def test_the_first_parameter_of_a_static_method_is_not_the_object() -> None:
    migrated = convert(
        helpers=TRAINER.replace("SAVED", "self.record(epoch, {})")
        + "\n    @staticmethod\n    def record(epoch, rest):\n        return {**rest, 'epoch': epoch}\n",
        wrap="trainer = Trainer(Net().cuda(), args)",
        optimizer="",
        loop="trainer.train(train_loader)\ntrainer.save()",
    )
    migrated.silent("MG631")


def test_its_state_out_of_such_a_file_is_no_checkpoint_of_the_engine() -> None:
    migrated = convert(
        resume='state = torch.load("a.pt")\noptimizer.load_state_dict(state["optimizer"].state_dict())',
        end='torch.save({"optimizer": optimizer}, "a.pt")',
    )
    migrated.said("MG626", "optimizer.load_state_dict", Kind.TODO)
    migrated.silent("MG622")


@pytest.mark.parametrize(
    "text",
    [
        'torch.save({"net": model.module.state_dict(), "lr": optimizer.param_groups[0]["lr"]}, "a.pt")',
        'torch.save({"net": model.module, "args": args}, "a.pt")',
        'torch.save({"optimizer": optimizer.state_dict()}, "a.pt")',
        'torch.save({"name": type(optimizer).__name__}, "a.pt")',
    ],
)
def test_state_dicts_and_settings_are_not_marked(text: str) -> None:
    convert(end=text).silent("MG631")


def test_settings_that_were_gathered_from_all_names_before_hold_no_optimizer() -> None:
    migrated = convert(
        wrap="config = {k: locals()[k] for k in names}\nmodel = DDP(Net().cuda())",
        end='torch.save({"optimizer": optimizer.state_dict(), "config": config}, "last.pt")',
    )
    migrated.silent("MG631")


def test_an_element_of_what_a_function_gives_is_not_the_optimizer_beside_it() -> None:
    made = "made = torch.optim.AdamW(net.parameters(), lr=args.lr)"
    helpers = f"def prepare(net, args):\n    {made}\n    return net, made, {{'files': [0]}}"
    wrap = "net, optimizer, state = prepare(Net().cuda(), args)\nmodel = DDP(net)\nfile = state['files'][0]"
    end = 'torch.save({"model": model.module.state_dict(), "files": [file]}, "a.pt")'
    convert(helpers=helpers, wrap=wrap, optimizer="", end=end).silent("MG631")
