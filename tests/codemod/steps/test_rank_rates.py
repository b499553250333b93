"""Learning rates that only some ranks change."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

LOOP = """
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


def behind(text: str) -> str:
    return LOOP.rstrip(" ") + "".join(f"        {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "scheduler.step()",
        'optimizer.param_groups[0]["lr"] = 0.1',
        'for group in optimizer.param_groups: group["lr"] *= 0.5',
        'for index, group in enumerate(optimizer.param_groups): group["lr"] = 0.1 * index',
    ],
)
def test_a_learning_rate_that_rank_0_changes_needs_stage_zero(line: str) -> None:
    text = line.replace(": ", ":\n        ") if line.startswith("for") else line
    migrated = convert(loop=behind(f"if rank == 0:\n    {text}"))
    migrated.said("MG613", line.rpartition(": ")[2], Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0
    assert convert(loop=behind(text.replace("\n    ", "\n"))).config["zero_optimization"]["stage"] == 2


def test_a_test_for_a_distributed_run_lets_all_ranks_in() -> None:
    convert(loop=behind("if rank != -1:\n    scheduler.step()")).silent("MG613")


def test_what_rank_0_only_reads_changes_nothing() -> None:
    convert(loop=behind('if rank == 0:\n    print(optimizer.param_groups[0]["lr"])')).silent("MG613")
