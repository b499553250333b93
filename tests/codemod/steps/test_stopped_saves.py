"""A save where a rank comes because it stops is marked: a checkpoint of DeepSpeed needs all ranks."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

STATE = '{"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}'
HELPERS = f"""
def save(model, optimizer, epoch, path):
    if dist.get_rank() == 0:
        torch.save({STATE}, path)
"""
LOOP = """
epoch = 0
try:
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        save(model, optimizer, epoch, "last.pt")
{end}
"""


def trained(end: str, helpers: str = HELPERS, **parts: str) -> Migrated:
    return convert(loop=LOOP.format(end=end), helpers=helpers, imports="import atexit\nimport signal", **parts)


@pytest.mark.parametrize(
    "head",
    [
        "except KeyboardInterrupt:",
        "except (OSError, RuntimeError) as error:",
        "except:",
        "finally:",
        "except Exception:",
    ],
)
def test_a_save_of_a_rank_that_fails(head: str) -> None:
    migrated = trained(f'{head}\n    save(model, optimizer, epoch, "crash.pt")')
    assert "for ever" in migrated.said("MG633", '"crash.pt"', Kind.TODO).message
    assert len([change for change in migrated.changes if change.code == "MG633"]) == 1


def test_one_that_is_written_there() -> None:
    end = f'except KeyboardInterrupt:\n    if rank == 0:\n        torch.save({STATE}, "crash.pt")'
    trained(end).said("MG633", '"crash.pt"', Kind.TODO)


def test_the_end_of_a_loader_comes_on_all_ranks() -> None:
    trained('except StopIteration:\n    save(model, optimizer, epoch, "end.pt")').silent("MG633")


def test_a_failure_around_no_training_is_not_meant() -> None:
    """Rank 0 tries another path: what it asked for is written behind its guard."""
    helpers = HELPERS.replace("        torch", "        try:\n            torch")
    helpers += f'        except OSError:\n            torch.save({STATE}, "other.pt")\n'
    trained("finally:\n    print(epoch)", helpers=helpers).silent("MG633")


@pytest.mark.parametrize("register", ["signal.signal(signal.SIGTERM, leave)", "atexit.register(leave)"])
def test_a_save_in_a_handler(register: str) -> None:
    handler = 'def leave(*_):\n    save(model, optimizer, 0, "signal.pt")\n\n'
    migrated = trained("finally:\n    print(epoch)", resume=f"{handler}{register}")
    migrated.said("MG633", '"signal.pt"', Kind.TODO)


def test_a_handler_that_sets_a_flag_is_fine() -> None:
    handler = "stop = []\n\ndef leave(*_):\n    stop.append(1)\n\nsignal.signal(signal.SIGTERM, leave)"
    trained("finally:\n    print(epoch)", resume=handler).silent("MG633")
