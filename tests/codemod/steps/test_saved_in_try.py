"""What a handler did where a checkpoint could not be written is not done any more, and the report says so."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, TAKEN_STATE, saving

HELPERS = f"""
def keep(model, optimizer, epoch):
    if dist.get_rank() == 0:
        torch.save({TAKEN_STATE}, "last.pt")


"""


def trained(kinds: str, handler: str = "print(epoch)", save: str = f"torch.save({STATE}, 'last.pt')") -> Migrated:
    body = f"if rank == 0:\n    try:\n        {save}\n    except{kinds}:\n        {handler}"
    return convert(loop=saving(body), helpers=HELPERS)


@pytest.mark.parametrize("kinds", ["", " OSError", " Exception as error", " (ValueError, IOError)", " RuntimeError"])
def test_an_error_that_was_passed_over(kinds: str) -> None:
    assert "ends the run" in trained(kinds).said("MG634", "    torch.save(", Kind.KEPT).message


def test_one_around_the_call_of_a_helper() -> None:
    trained(" OSError", save="keep(model, optimizer, epoch)").said("MG634", "    torch.save(", Kind.KEPT)


@pytest.mark.parametrize(
    ("kinds", "handler"), [(" KeyError", "print(epoch)"), (" OSError", "raise"), (" OSError", "exit(1)")]
)
def test_one_that_ended_the_script_before(kinds: str, handler: str) -> None:
    trained(kinds, handler).silent("MG634")


def test_a_try_around_the_training_is_not_meant() -> None:
    loop = saving(f"if rank == 0:\n    torch.save({STATE}, 'last.pt')").lstrip().replace("\n", "\n    ")
    convert(loop=f"try:\n    {loop.rstrip()}\nexcept OSError:\n    print(rank)").silent("MG634")
