"""Weights that a script takes back out of the dictionary that it saves as a resume checkpoint."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

HELPERS = """
    def keep(entries, is_best):
        torch.save(entries, "last.pt")
        if is_best:
            torch.save(entries["model"], "best.pth")


    class Keeper:
        def save(self, entries):
            torch.save(entries, "last.pt")
            best = entries.get("model")
            torch.save(best, "best.pth")
    """
WHOLE = '"model": model.module.state_dict()'


def migrated(text: str) -> Migrated:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return convert(helpers=HELPERS, resume=RESUME, loop="keeper = Keeper()\n" + saving(f"if rank == 0:\n{lines}"))


@pytest.mark.parametrize(
    "text",
    [
        f"keep({STATE}, epoch > 3)",
        f"keeper.save({STATE})",
        'torch.save(state["model"], "best.pth")',
        'torch.save({"weights": state["model"], "epoch": epoch}, "best.pth")',
        'torch.save({k: v for k, v in state.items() if k != "optimizer"}, "best.pth")',
        'best = copy.deepcopy(state)\ntorch.save(best["model"], "best.pth")',
        'other = state\ntorch.save(other.pop("model"), "best.pth")',
    ],
)
def test_weights_that_are_taken_back_stay_in_the_dictionary(text: str) -> None:
    if "STATE" not in text and "keep" not in text:
        text = f'state = {STATE}\ntorch.save(state, "last.pt")\n{text}'
    assert WHOLE in migrated(text).section("loop")


@pytest.mark.parametrize(
    "text",
    ['print(state["epoch"])', 'state["best"] = 1', "state.update(best=1)", 'del state["model"]', 'state.pop("model")'],
)
def test_other_entries_keep_no_weights_in_it(text: str) -> None:
    kept = migrated(f'state = {STATE}\ntorch.save(state, "last.pt")\n{text}')
    assert '"model": "saved by the engine"' in kept.section("loop")


def test_a_name_that_holds_what_was_loaded_before_keeps_none() -> None:
    kept = migrated(f'checkpoint = {STATE}\ntorch.save(checkpoint, "last.pt")')
    assert '"model": "saved by the engine"' in kept.section("loop")


def test_an_optimizer_state_that_is_taken_out_is_marked() -> None:
    line = 'torch.save(state["optimizer"], "optimizer.pt")'
    kept = migrated(f'state = {STATE}\ntorch.save(state, "last.pt")\n{line}')
    kept.said("MG621", line, Kind.TODO)
