"""Reads of a checkpoint that only look something up: training does not go on from those."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

SAVES = f'if rank == 0:\n    torch.save({STATE}, "last.pt")\n    if epoch % 2:\n        torch.save({STATE}, "best.pt")'
LAST = """
start_epoch = 0
if os.path.isfile("last.pt"):
    checkpoint = torch.load("last.pt", map_location="cpu")
    LOOKUP
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
"""


def resumed(resume: str, helpers: str = "") -> Migrated:
    return convert(imports="import os", helpers=helpers, resume=resume, loop=saving(SAVES))


@pytest.mark.parametrize(
    "lookup",
    [
        'best = torch.load("best.pt")["epoch"]',
        'best = torch.load("best.pt").get("epoch", 0)',
        'other = torch.load("best.pt")\n    best = other["epoch"]',
        'best = best_of(torch.load("best.pt"))',
    ],
)
def test_a_checkpoint_that_is_read_for_its_metric_is_not_resumed(lookup: str) -> None:
    helpers = "def best_of(checkpoint):\n    return checkpoint['epoch']"
    migrated = resumed(LAST.replace("LOOKUP", lookup), helpers)
    assert 'checkpoint = read_checkpoint("last.pt")\n' in migrated.code
    assert 'read_checkpoint("best.pt", resume=False)' in migrated.code
    assert "    if resume:\n        _resume_requests.append(os.fspath(path))\n" in migrated.code
    assert not [c for c in migrated.changes if c.kind is Kind.TODO]


def test_a_lookup_before_the_wrap_does_not_start_the_training_from_it() -> None:
    early = 'best = torch.load("best.pt")["epoch"]\n' + LAST.replace("LOOKUP", "pass").replace("model.module", "model")
    migrated = convert(
        imports="import os", wrap=f"model = Net().cuda()\n{early}\nmodel = DDP(model)", resume="", loop=saving(SAVES)
    )
    assert 'best = read_checkpoint("best.pt", resume=False)["epoch"]' in migrated.code


@pytest.mark.parametrize(
    "way",
    [
        'checkpoint = torch.load("best.pt")',
        'held = torch.load("best.pt")\n    checkpoint = held',
        'held = {}\n    held["all"] = torch.load("best.pt")\n    checkpoint = held["all"]',
        'if args.resume:\n        checkpoint = torch.load("best.pt")',
    ],
)
def test_what_may_be_loaded_is_resumed_from(way: str) -> None:
    migrated = resumed(LAST.replace("LOOKUP", way))
    assert "resume=False" not in migrated.code


def test_a_single_read_is_written_as_before() -> None:
    code = resumed(RESUME).code
    assert "def read_checkpoint(path):" in code
    assert "\n    _resume_requests.append(os.fspath(path))\n" in code
