"""Ranks that leave a round of the loop, or a helper, above a save write what rank 0 asks for on their way out."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, TAKEN_STATE, saving

WRITE = "save_requested_checkpoints(model)"
SAVE = f"torch.save({STATE}, 'best.pt')"
HELPER = f"""
def keep(model, optimizer, epoch, value, best):
    if value >= best:
        return best
    torch.save({TAKEN_STATE}, "best.pt")
    return value


"""


def trained(body: str, helpers: str = "") -> Migrated:
    return convert(loop=f"best = 1e9\n{saving(body).lstrip()}", helpers=helpers)


@pytest.mark.parametrize(
    "test", ["rank != 0", "loss.item() > best", "epoch_loss >= best", "not (rank == 0)", "best < loss and epoch > 1"]
)
def test_the_others_write_before_they_go_on(test: str) -> None:
    section = trained(f"epoch_loss = loss.item()\nif {test}:\n    continue\n{SAVE}").section("loop")
    assert f"    if {test}:\n        {WRITE}\n        continue\n" in section
    assert section.endswith(f"'best.pt')\n    {WRITE}\n")
    assert section.count(WRITE) == 2


def test_so_does_who_leaves_between_and_the_rest_of_the_block_is_in_it() -> None:
    body = "if rank != 0:\n    continue\nif epoch == 3:\n    break\n"
    body += f"if epoch % 5 == 0:\n    if loss > best:\n        continue\n    {SAVE}"
    section = trained(body).section("loop")
    assert section.count(WRITE) == 4
    assert f"    if epoch == 3:\n        {WRITE}\n        break\n" in section
    assert f"        if loss > best:\n            {WRITE}\n            continue\n" in section
    assert section.endswith(f"'best.pt')\n    {WRITE}\n")


@pytest.mark.parametrize("test", ["epoch % 5 != 0", "epoch < args.epochs - 1"])
def test_what_all_ranks_leave_by_stays(test: str) -> None:
    section = trained(f"if {test}:\n    continue\n{SAVE}").section("loop")
    assert section.count(WRITE) == 1


def test_no_rank_leaves_alone_in_front_of_a_step() -> None:
    loop = saving(f"print(epoch)\n{SAVE}").replace(
        "        optimizer.zero", "        if torch.isnan(loss):\n            continue\n        optimizer.zero"
    )
    assert convert(loop=loop.replace("    print(epoch)\n    torch", "        torch")).section("loop").count(WRITE) == 1


def test_a_helper_that_is_left_by_a_metric_asks_only() -> None:
    migrated = trained("best = keep(model, optimizer, epoch, loss.item(), best)", HELPER)
    assert WRITE not in migrated.section("helpers")
    assert migrated.section("loop").endswith(f"best)\n    {WRITE}\n")


def test_a_loop_that_only_rank_0_goes_on_with_is_marked() -> None:
    migrated = trained(f"if rank != 0:\n    break\n{SAVE}")
    assert "on all ranks" in migrated.said("MG621", "torch.save(", Kind.TODO).message
