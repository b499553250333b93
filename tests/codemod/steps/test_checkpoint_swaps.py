"""Averaged weights that are in the model while it is saved, and out of it when all ranks write."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

IMPORT = "from torch_ema import ExponentialMovingAverage"
MADE = "ema = ExponentialMovingAverage(model.parameters(), decay=0.9)"
SAVE = f'torch.save({STATE}, "last.pt")'
OWN = """
    class Average:
        def __init__(self, model):
            self.model = model
            self.kept = [p.detach().clone() for p in model.parameters()]

        def back(self):
            for kept, parameter in zip(self.kept, self.model.parameters()):
                parameter.data.copy_(kept)
    """


@pytest.mark.parametrize(
    ("lines", "culprit"),
    [
        (f"ema.copy_to(model.parameters())\n{SAVE}\nema.restore(model.parameters())", "ema.restore"),
        (f"helper.swap(model)\n{SAVE}\nhelper.swap(model)", "helper.swap"),
        (f"with ema.average_parameters():\n    {SAVE}", "ema.average_parameters"),
    ],
)
def test_a_save_whose_weights_are_taken_out_again_is_marked(lines: str, culprit: str) -> None:
    body = "if rank == 0:\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    migrated = convert(imports=IMPORT + "\nfrom library import helper", resume=MADE, loop=saving(body))
    told = migrated.said("MG616", SAVE, Kind.TODO)
    assert told.message.startswith(f"{culprit} changes the weights before all ranks write")


def test_a_class_of_the_script_that_writes_weights_is_followed() -> None:
    body = f"if rank == 0:\n    {SAVE}\n    average.back()\n"
    migrated = convert(helpers=OWN, resume="average = Average(model)", loop=saving(body))
    migrated.said("MG616", SAVE, Kind.TODO)


@pytest.mark.parametrize(
    "body",
    [
        f"ema.copy_to(model.parameters())\nif rank == 0:\n    {SAVE}\nema.restore(model.parameters())\n",
        f"with ema.average_parameters():\n    if rank == 0:\n        {SAVE}\n",
        f"if rank == 0:\n    {SAVE}\n    ema.update(model.parameters())\n    print(ema.decay)\n",
    ],
)
def test_weights_that_are_still_there_when_all_ranks_write_have_nothing_to_say(body: str) -> None:
    convert(imports=IMPORT, resume=MADE, loop=saving(body)).silent("MG616")
