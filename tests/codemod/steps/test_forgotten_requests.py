"""A checkpoint that a script removes again before all ranks have written it."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

SAVE = f'    path = os.path.join(args.output, f"{{epoch}}.pt")\n    torch.save({STATE}, path)\n'
BEST = "    kept.append((epoch % 3, path))\n    kept.sort()\n    if len(kept) > 2:\n        os.remove(kept.pop()[1])\n"
OLDEST = "    if len(kept) > 2:\n        os.remove(kept.pop(0))\n"


def kept(before: str, behind: str) -> Migrated:
    return convert(resume=RESUME, loop="kept = []\n" + saving(f"if rank == 0:\n{before}{SAVE}{behind}"))


def functions(migrated: Migrated, asked: list[str]) -> dict[str, Any]:
    """The functions for checkpoints of a converted script, with paths that are requested."""
    names = ("remove_checkpoint",)
    parts = [n for n in ast.parse(migrated.code).body if isinstance(n, ast.FunctionDef) and n.name in names]
    requests = [({}, path) for path in asked]
    space: dict[str, Any] = {"os": os, "shutil": SimpleNamespace(rmtree=os.rmdir), "_checkpoint_requests": requests}
    exec(compile(ast.Module(parts, []), "train.py", "exec"), space)  # noqa: S102  (the converted script's own function)
    return space


def test_the_worst_of_all_may_be_the_one_that_was_just_requested(tmp_path: Path) -> None:
    new, old, other = (str(tmp_path / name) for name in ("new.pt", "old.pt", "other.pt"))
    Path(old).mkdir()
    space = functions(kept("", BEST), [new, old, other])
    space["remove_checkpoint"](new)
    space["remove_checkpoint"](Path(old))
    assert [path for _, path in space["_checkpoint_requests"]] == [other]
    assert not Path(old).exists()
    with pytest.raises(FileNotFoundError):
        space["remove_checkpoint"](new)


def test_what_is_removed_before_the_next_request_is_there() -> None:
    assert "requested" not in kept(OLDEST, "").code.partition("def remove_checkpoint")[2].partition("\ndef ")[0]
