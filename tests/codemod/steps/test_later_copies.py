"""Copies of a checkpoint behind the place where all ranks have written it."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

SAVES = saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")\n')


@pytest.mark.parametrize(
    "behind",
    [
        'if rank == 0:\n    shutil.copyfile("last.pt", "final.pt")\n',
        '    if rank == 0 and epoch % 2 == 0:\n        shutil.copy("last.pt", "final.pt")\n',
    ],
)
def test_what_is_written_already_is_copied(behind: str) -> None:
    migrated = later(behind)
    saved, _, copied = migrated.section("loop").partition("save_requested_checkpoints(model)")
    assert 'copy_checkpoint("last.pt", "final.pt")' in copied
    assert "final.pt" not in saved
    assert "request_checkpoint(" not in copied
    assert not [change for change in migrated.changes if change.kind is Kind.TODO]


def test_what_is_only_requested_is_requested_twice() -> None:
    loop = saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")\n    shutil.copyfile("last.pt", "final.pt")\n')
    assert "copy_checkpoint" not in convert(imports="import shutil", resume=RESUME, loop=loop).code


def test_a_move_behind_the_training_gives_no_name_to_what_is_saved_before() -> None:
    migrated = later('if rank == 0:\n    shutil.move("last.pt", "final.pt")\n')
    assert '}, "last.pt")' in migrated.section("loop").partition("save_requested_checkpoints(model)")[0]


def test_the_copy_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    code = later('if rank == 0:\n    shutil.copyfile("last.pt", "final.pt")\n').code
    copy = next(n for n in ast.parse(code).body if getattr(n, "name", "") == "copy_checkpoint")
    space: dict[str, Any] = {"os": os, "shutil": shutil}
    exec(compile(ast.Module([copy], []), "train.py", "exec"), space)  # noqa: S102  (the helper itself is the subject)
    last, final = tmp_path / "last.pt", tmp_path / "final.pt"
    last.mkdir()
    final.write_text("of the script before")
    for text in ("first", "second"):
        (last / "states.pt").write_text(text)
        space["copy_checkpoint"](str(last), final)
        assert (final / "states.pt").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["final.pt", "final.pt.before", "last.pt"]


def later(behind: str) -> Migrated:
    return convert(imports="import shutil", resume=RESUME, loop=SAVES + behind)
