"""MG711: forwards that only some ranks run, at ZeRO stage 3."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

LOOP = """
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {test}
            print(evaluate(model, train_loader))
    """
HELPER = """
    def evaluate(model, loader):
        with torch.no_grad():
            return sum(F.cross_entropy(model(x), y).item() for x, y in loader)
    """


def marked(test: str, stage: int = 3, helpers: str = HELPER, loop: str = LOOP) -> list[str]:
    migrated = convert(helpers=helpers, loop=loop.format(test=test), to={"zero_stage": stage})
    lines = migrated.before.splitlines()
    found = [change for change in migrated.changes if change.code == "MG711"]
    assert all(change.kind is Kind.TODO for change in found)
    return [lines[change.line - 1].strip() for change in found]


@pytest.mark.parametrize(
    "test",
    [
        "if rank == 0:",
        "if dist.get_rank() == 0:",
        "if epoch % 2 == 0 and args.local_rank in [-1, 0]:",
        "if not rank:",
        "if 0 == rank:",
        "if rank < 1:",
        "if rank % 8 == 0:",
        "if is_main_process():",
        "if master_process:",
        'if int(os.environ["RANK"]) == 0:',
    ],
)
def test_an_evaluation_under_a_rank_guard_is_marked_at_stage_3_alone(test: str) -> None:
    assert marked(test) == [test]
    assert marked(test, stage=2) == []


@pytest.mark.parametrize(
    "test",
    ["if epoch % 2 == 0:", "if args.local_rank != -1:", "if rank >= 0:", "if args.distributed:", "if world_size > 1:"],
)
def test_an_evaluation_that_all_ranks_come_by_is_not_marked(test: str) -> None:
    assert marked(test) == []


def test_an_evaluation_of_undistributed_runs_is_not_marked() -> None:
    inner = LOOP.replace(
        "            print(", "            if args.local_rank == -1 and args.evaluate:\n                print("
    )
    assert marked("if args.local_rank in [-1, 0]:", loop=inner) == []


def test_a_helper_that_returns_early_on_other_ranks_is_marked() -> None:
    early = HELPER.replace(
        "        with torch.no_grad",
        "        if dist.get_rank() != 0:\n            return None\n        with torch.no_grad",
    )
    assert marked("if True:", helpers=early) == ["if dist.get_rank() != 0:"]


def test_an_evaluation_that_another_module_defines_is_marked() -> None:
    assert marked("if rank == 0:", helpers="from evaluation import evaluate") == ["if rank == 0:"]


def test_a_guard_with_a_forward_on_either_side_is_not_marked() -> None:
    both = LOOP.rstrip() + "\n        else:\n            evaluate(model, train_loader)\n    "
    assert marked("if rank == 0:", loop=both) == []
