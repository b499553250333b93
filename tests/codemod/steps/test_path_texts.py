"""Loads of a checkpoint whose path a helper puts together out of what it is handed."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, TAKEN_STATE, saving

KEEP = """
def keep({parameters}, model, optimizer, epoch):
    torch.save({state}, {path})
"""


def kept(parameters: str, path: str, given: str, end: str, *, helpers: str = "", loop: str = "") -> Migrated:
    return convert(
        imports="from pathlib import Path",
        helpers=KEEP.format(parameters=parameters, state=TAKEN_STATE, path=path) + helpers,
        resume=RESUME,
        loop=loop + saving(f"if rank == 0:\n    keep({given}, model.module, optimizer, epoch)"),
        end=end,
    )


def best_of(path: str) -> str:
    return f'best = torch.load({path}, map_location="cpu")\nmodel.module.load_state_dict(best["model"])'


@pytest.mark.parametrize(
    ("parameters", "path", "given", "read"),
    [
        ("args, name", "os.path.join(args.output, name)", 'args, "best.pt"', 'os.path.join(args.output, "best.pt")'),
        ("path", "path", 'os.path.join(args.output, "best.pt")', 'os.path.join(args.output, "best.pt")'),
        ("path", "path", 'os.path.join(args.output, "best.pt")', 'f"{args.output}/best.pt"'),
        ("folder, name", 'f"{folder}/{name}.pt"', 'args.output, "best"', 'args.output + "/best.pt"'),
        ("folder", 'Path(folder) / "best.pt"', "args.output", 'Path(args.output) / "best.pt"'),
        ("cfg", 'os.path.join(cfg.output, "best.pt")', "args", 'os.path.join(args.output, "best.pt")'),
        ("folder", 'f"{folder}/best.pt"', "folder", 'f"{args.output}/best.pt"'),
    ],
)
def test_a_load_of_what_a_helper_saves_reads_the_checkpoint(parameters: str, path: str, given: str, read: str) -> None:
    migrated = kept(parameters, path, given, best_of(read), loop="folder = args.output\n")
    assert f"best = read_checkpoint({read})" in migrated.code
    assert '"model": model.state_dict()' in migrated.code
    assert not [change for change in migrated.changes if change.kind is Kind.TODO], migrated.told()


def test_the_name_that_a_helper_takes_by_default_is_known() -> None:
    helper = KEEP.format(parameters='name="last.pt", *', state=TAKEN_STATE, path="name")
    migrated = convert(
        helpers=helper,
        resume=RESUME,
        loop=saving("if rank == 0:\n    keep(model=model.module, optimizer=optimizer, epoch=epoch)"),
        end=best_of('"last.pt"'),
    )
    assert 'best = read_checkpoint("last.pt")' in migrated.code


def test_a_reader_that_is_handed_the_folder_reads_the_checkpoint() -> None:
    reader = 'def best_weights(folder):\n    return torch.load(os.path.join(folder, "best.pt"))["model"]\n'
    migrated = kept("args, name", "os.path.join(args.output, name)", 'args, "best.pt"',
                    "model.module.load_state_dict(best_weights(args.output))", helpers=f"\n\n{reader}")  # fmt: skip
    assert 'return read_checkpoint(os.path.join(folder, "best.pt"))["model"]' in migrated.code


def test_a_reader_that_is_also_handed_another_folder_is_marked() -> None:
    reader = 'def best_weights(folder):\n    return torch.load(os.path.join(folder, "best.pt"))["model"]\n'
    end = 'model.module.load_state_dict(best_weights(args.output))\nold = best_weights("former")'
    migrated = kept("args, name", "os.path.join(args.output, name)", 'args, "best.pt"', end, helpers=f"\n\n{reader}")
    migrated.said("MG622", "return torch.load(os.path.join(folder", Kind.TODO)


@pytest.mark.parametrize(
    "read",
    ['os.path.join(args.output, "teacher.pt")', '"best.pt"', "args.pretrained", 'os.path.join(args.data, "best.pt")'],
)
def test_a_load_of_another_path_stays(read: str) -> None:
    migrated = kept("args, name", "os.path.join(args.output, name)", 'args, "best.pt"', f"teacher = torch.load({read})")
    assert f"teacher = torch.load({read})" in migrated.code
    assert not [change for change in migrated.changes if change.kind is Kind.TODO], migrated.told()


def test_a_name_that_is_added_to_is_another() -> None:
    end = 'name = "best"\nname += ".old.pt"\nteacher = torch.load(os.path.join(args.output, name))'
    migrated = kept("args, name", "os.path.join(args.output, name)", 'args, "best"', end)
    assert "teacher = torch.load(os.path.join(args.output, name))" in migrated.code


def test_moving_what_a_helper_has_saved_is_marked() -> None:
    migrated = kept("args, name", "os.path.join(args.output, name)", 'args, "last.pt"', "",
                    loop='if rank == 0 and os.path.exists(os.path.join(args.output, "last.pt")):\n'
                    '    shutil.copy(os.path.join(args.output, "last.pt"), args.output + "/older.pt")\n')  # fmt: skip
    migrated.said("MG623", "shutil.copy(os.path.join(args.output", Kind.TODO)


def test_a_reader_that_is_handed_very_many_paths_is_marked() -> None:
    reader = 'def weights_of(name):\n    return torch.load(os.path.join("runs", name))["model"]\n'
    end = "".join(f'w{number} = weights_of("{number % 3}.pt")\n' for number in range(40))
    migrated = kept("name", 'os.path.join("runs", name)', '"0.pt"', end, helpers=f"\n\n{reader}")
    migrated.said("MG622", 'torch.load(os.path.join("runs", name))', Kind.TODO)
