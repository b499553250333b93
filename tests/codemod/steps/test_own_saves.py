"""Where every rank saved by a metric of its own, the report says that rank 0's decides."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, TAKEN_STATE, saving

SAVE = f"torch.save({STATE}, 'best.pt')"
HELPER = f"""
def keep(model, optimizer, epoch, value, best):
    if value >= best:
        return best
    torch.save({TAKEN_STATE}, 'best.pt')
    return value


def save(model, optimizer, epoch):
    torch.save({TAKEN_STATE}, 'best.pt')


"""


def trained(body: str) -> Migrated:
    return convert(loop=f"best = 1e9\n{saving(body).lstrip()}", helpers=HELPER)


@pytest.mark.parametrize(
    "body",
    [
        f"if loss.item() < best:\n    {SAVE}",
        f"is_best = loss.item() < best\nif is_best:\n    {SAVE}",
        f"if loss.item() >= best:\n    continue\n{SAVE}",
        "if loss.item() < best:\n    save(model, optimizer, epoch)",
    ],
)
def test_by_the_metric_of_each_rank(body: str) -> None:
    assert "rank 0" in trained(body).said("MG635", "torch.save(", Kind.KEPT).message


@pytest.mark.parametrize(
    "body",
    [
        f"if loss.item() < best and rank == 0:\n    {SAVE}",
        f"if loss.item() < best:\n    if rank == 0:\n        {SAVE}",
        f"dist.all_reduce(loss)\nif loss.item() < best:\n    {SAVE}",
        f"if rank != 0:\n    continue\nif loss.item() < best:\n    {SAVE}",
        "if rank == 0:\n    if loss.item() < best:\n        save(model, optimizer, epoch)",
        f"if epoch % 5 == 0:\n    {SAVE}",
    ],
)
def test_by_that_of_rank_0_or_of_all(body: str) -> None:
    trained(body).silent("MG635")
