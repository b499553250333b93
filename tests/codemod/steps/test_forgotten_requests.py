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
    names = ("remove_checkpoint", "is_requested", "save_requested_checkpoints")
    parts = [n for n in ast.parse(migrated.code).body if isinstance(n, ast.FunctionDef) and n.name in names]
    group = SimpleNamespace(get_rank=lambda: 0, broadcast_object_list=lambda *_, **__: None)
    space: dict[str, Any] = {
        "os": os,
        "shutil": SimpleNamespace(rmtree=os.rmdir),
        "torch": SimpleNamespace(distributed=group),
        "_checkpoint_requests": [({}, path) for path in asked],
        "_checkpoint_removals": [],
    }
    exec(compile(ast.Module(parts, []), "train.py", "exec"), space)  # noqa: S102  (the converted script's own function)
    return space


class Engine:
    """Writes directories, and notes what else is there by then."""

    def __init__(self) -> None:
        self.beside: list[set[str]] = []

    def save_checkpoint(self, folder: str, tag: str, **_: Any) -> None:
        self.beside.append({path.name for path in Path(folder).iterdir()})
        (Path(folder) / tag).mkdir(exist_ok=True)


def test_the_worst_of_all_may_be_the_one_that_was_just_requested(tmp_path: Path) -> None:
    new, old, other = (str(tmp_path / name) for name in ("new.pt", "old.pt", "other.pt"))
    Path(old).mkdir()
    space, engine = functions(kept("", BEST), [new, old, other]), Engine()
    space["remove_checkpoint"](new)
    space["remove_checkpoint"](Path(old))
    assert [path for _, path in space["_checkpoint_requests"]] == [other]
    with pytest.raises(FileNotFoundError):
        space["remove_checkpoint"](new)
    space["remove_checkpoint"](new, missing_ok=True)
    assert not space["is_requested"](new)
    space["save_requested_checkpoints"](engine)
    assert engine.beside == [{"old.pt"}]
    assert not Path(old).exists()


def test_a_former_one_is_there_until_the_new_one_is(tmp_path: Path) -> None:
    new, old, last = (str(tmp_path / name) for name in ("new.pt", "old.pt", "last.pt"))
    for path in (old, last):
        Path(path).mkdir()
    space, engine = functions(kept("", BEST), [new]), Engine()
    for path in (old, last):
        space["remove_checkpoint"](path)
    space["_checkpoint_requests"].append(({}, last))
    space["save_requested_checkpoints"](engine)
    assert engine.beside[0] == {"old.pt", "last.pt"}
    assert {path.name for path in tmp_path.iterdir()} == {"new.pt", "last.pt"}


def test_links_and_files_are_removed_at_once(tmp_path: Path) -> None:
    """A script makes the link anew right behind it."""
    link, file, folder = tmp_path / "latest", tmp_path / "results.npy", tmp_path / "run"
    link.symlink_to("old.pt")
    file.touch()
    folder.mkdir()
    space = functions(kept("", BEST), [str(folder / "new.pt")])
    for path in (link, file, folder):
        space["remove_checkpoint"](path)
    assert not link.is_symlink()
    assert not file.exists()
    space["save_requested_checkpoints"](Engine())
    assert (folder / "new.pt").exists()


def test_a_folder_that_is_made_again_is_removed_at_once() -> None:
    body = f"if rank == 0:\n{SAVE}    shutil.rmtree(args.output)\n    os.makedirs(args.output)"
    migrated = convert(resume=RESUME, loop=saving(body), imports="import shutil")
    assert "shutil.rmtree(args.output)\n        os.makedirs" in migrated.section("loop")


def test_who_removes_until_few_are_left_comes_to_an_end(tmp_path: Path) -> None:
    old = tmp_path / "old.pt"
    old.mkdir()
    space = functions(kept("", BEST), [str(tmp_path / "new.pt")])
    for _ in range(2):
        space["remove_checkpoint"](old)
    assert not old.exists()
    space["save_requested_checkpoints"](Engine())


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [
        ("old.unlink(missing_ok=True)", "remove_checkpoint(old, missing_ok=True)"),
        ("shutil.rmtree(old, ignore_errors=True)", "remove_checkpoint(old, missing_ok=True)"),
        ("shutil.rmtree(old)", "remove_checkpoint(old)"),
        ("if old.exists():\n    old.unlink()", "if is_requested(old) or old.exists():\n    remove_checkpoint(old)"),
        ("if not os.path.isfile(old): continue\nos.remove(old)", "remove_checkpoint(old)"),
        (
            "if epoch and os.path.isfile(old):\n    os.remove(old)",
            "if epoch and (is_requested(old) or os.path.exists(old)):\n    remove_checkpoint(old)",
        ),
    ],
)
def test_ways_to_remove_a_former_one(behind: str, wanted: str) -> None:
    text = "".join(f"    {line}\n" for line in f"old = kept.pop(0)\n{behind}".splitlines())
    migrated = convert(
        resume=RESUME, loop="kept = []\n" + saving(f"if rank == 0:\n{SAVE}    kept.append(Path(path))\n{text}"),
        imports="import shutil\nfrom pathlib import Path",
    )  # fmt: skip
    assert "".join(f"        {line}\n" for line in wanted.splitlines()) in migrated.section("loop")


def test_what_is_removed_before_the_next_request_is_there() -> None:
    assert "requested" not in kept(OLDEST, "").code.partition("def remove_checkpoint")[2].partition("\ndef ")[0]


OWN_STATE = STATE.replace("model.module", "self.model.module").replace("optimizer.s", "self.optimizer.s")
KEEPER = f"""
class Keeper:
    def __init__(self):
        self.kept = []

    def ended(self, trainer, epoch, value):
        target = os.path.join("out", f"{{epoch}}.bin")
        trainer.write(target, epoch)
        self.kept.append((value, target))
        self.kept.sort()
        if len(self.kept) > 2:
            _, worst = self.kept.pop()
            if os.path.exists(worst):
                os.remove(worst)


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def write(self, target, epoch):
        if dist.get_rank() GUARD
        torch.save({OWN_STATE}, target)


"""


@pytest.mark.parametrize(
    ("guard", "wanted"),
    [
        ("!= 0:\n            return\n", "if is_requested(worst) or os.path.exists(worst):"),
        ("== 0:\n    ", "if os.path.exists(worst):"),
    ],
)
def test_a_list_of_paths_that_a_method_of_another_object_writes(guard: str, wanted: str) -> None:
    body = "for keeper in [Keeper()]:\n    keeper.ended(trainer, epoch, loss.item())"
    helpers = KEEPER.replace("GUARD\n", guard)
    code = convert(helpers=helpers, loop=f"trainer = Trainer(model, optimizer)\n{saving(body)}").section("helpers")
    assert f"            {wanted}\n                remove_checkpoint(worst)\n" in code
