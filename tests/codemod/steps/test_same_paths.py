"""Second readers of a resume checkpoint, in functions that are handed its path."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

READER = "def average_of(path):\n    return torch.load(path, map_location='cpu')['average']"
HELPER = """
def resume(path, model, optimizer):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"] + 1
"""
CALL = "start_epoch = 0\nif args.resume:\n    start_epoch = resume(args.resume, model.module, optimizer)\n"


def resumed(helpers: str, resume: str) -> Migrated:
    return convert(
        helpers=helpers, resume=resume, loop=saving(f'if rank == 0:\n    torch.save({STATE}, f"{{epoch}}.pt")')
    )


@pytest.mark.parametrize(
    ("helpers", "resume"),
    [
        (READER, RESUME + "    average = average_of(args.resume)\n"),
        (f"{HELPER}\n\n{READER}", CALL + "    average = average_of(args.resume)\n"),
        (f"{HELPER}\n\n{READER}", "path = args.resume\n" + CALL + "    average = average_of(path)\n"),
        (
            f"{HELPER}\n\n{READER}\n\n\ndef start(path):\n    return average_of(path)",
            CALL + "    average = start(args.resume)\n",
        ),
        (HELPER, CALL + '    average = torch.load(args.resume, map_location="cpu")["average"]\n'),
    ],
)
def test_whoever_is_handed_the_path_reads_the_checkpoint(helpers: str, resume: str) -> None:
    migrated = resumed(helpers, resume)
    assert "torch.load(" not in migrated.code.replace("torch.load(files[0]", "")
    assert '"model": "saved by the engine"' in migrated.code
    assert not [c for c in migrated.changes if c.kind is Kind.TODO]


def test_weights_that_the_second_reader_takes_stay_in_the_checkpoint() -> None:
    reader = 'def average_of(path, net):\n    net.load_state_dict(torch.load(path)["model"])'
    migrated = resumed(reader, RESUME + "    average_of(args.resume, copy.deepcopy(model.module))\n")
    assert 'net.load_state_dict(read_checkpoint(path, resume=False)["model"])' in migrated.code
    assert '"model": model.module.state_dict()' in migrated.code


def test_a_reader_of_other_files_too_is_marked() -> None:
    migrated = resumed(READER, "old = average_of('old.pt')\n" + RESUME + "    average = average_of(args.resume)\n")
    assert "return torch.load(path, map_location='cpu')['average']" in migrated.code
    migrated.said("MG622", "return torch.load(path", Kind.TODO)


def test_a_reader_of_other_files_stays() -> None:
    migrated = resumed(READER, "old = average_of('old.pt')\n" + RESUME)
    assert READER in migrated.code
    migrated.said("MG622", 'optimizer.load_state_dict(checkpoint["optimizer"])', Kind.CONVERTED)
