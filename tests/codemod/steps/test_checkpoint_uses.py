"""What else a script does with the path of a checkpoint, which is a directory now and written behind the guard."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

IMPORTS = """
import glob
import subprocess
import zipfile

import mlflow
import wandb
from hub import add_file, cleanup, upload_file
"""
PATH = 'os.path.join(args.output, f"{epoch}.pt")'
SAVE = f"torch.save({STATE}, {PATH})"
SAVE_LAST = f'torch.save({STATE}, "last.pt")'


def guarded(text: str, save: str = SAVE, *, before: str = "", helpers: str = "", behind: str = "") -> Migrated:
    lines = [*before.splitlines(), save, *text.splitlines()]
    block = "".join(f"    {line}\n" for line in lines)
    return convert(
        imports=IMPORTS, helpers=helpers, resume=RESUME, loop="kept = []\n" + saving(f"if rank == 0:\n{block}{behind}")
    )


def marked(migrated: Migrated) -> list[str]:
    lines = migrated.before.splitlines()
    return [lines[c.line - 1].strip() for c in migrated.changes if c.code == "MG623" and c.kind is Kind.TODO]


# -- who gets the path -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'upload_file(path_in_repo="x", file="last.pt")',
        'add_file("last.pt")',
        'wandb.save("last.pt")',
        'zipfile.ZipFile("all.zip", "w").write("last.pt")',
        'remote.put("last.pt", "bucket/last.pt")',
        'mlflow.log_artifact("last.pt")',
        'subprocess.run(["aws", "s3", "cp", "last.pt", "s3://bucket"])',
        'print(os.path.getsize("last.pt"))',
        'shutil.copy("last.pt", args.output)',
        'data = open("last.pt", "rb").read()',
    ],
)
def test_who_wants_a_file_is_named(text: str) -> None:
    assert marked(guarded(text, save=f'torch.save({STATE}, "last.pt")')) == [text]


@pytest.mark.parametrize("text", ["path.stat()", 'path.rename("old.pt")', "path.read_bytes()"])
def test_a_method_of_the_path_that_wants_a_file_is_named(text: str) -> None:
    migrated = convert(
        imports="from pathlib import Path",
        resume=RESUME,
        loop='path = Path("last.pt")\n' + saving(f"if rank == 0:\n    torch.save({STATE}, path)\n    {text}"),
    )
    assert marked(migrated) == [text]


@pytest.mark.parametrize("text", ['print("last.pt")', 'kept.append("last.pt")', 'os.symlink("last.pt", "link.pt")'])
def test_who_only_gets_the_name_is_not(text: str) -> None:
    assert not marked(guarded(text, save=f'torch.save({STATE}, "last.pt")'))


def test_a_checkpoint_that_is_written_at_once_is_there() -> None:
    text = f'torch.save({STATE}, "last.pt")\nif os.path.exists("last.pt"):\n    print("saved")\n'
    assert not marked(convert(resume=RESUME, loop=saving(text)))
    under = guarded('print(os.path.exists("last.pt"))', save=text.splitlines()[0])
    assert marked(under) == ['print(os.path.exists("last.pt"))']


# -- copies and moves --------------------------------------------------------------------------------------------------


def test_a_copy_of_a_state_that_is_written_out_is_hollow_too() -> None:
    code = guarded(f'shutil.copy({PATH}, "last.pt")').section("loop")
    hollow = '{"model": "saved by the engine", "optimizer": "saved by the engine", "epoch": epoch}'
    assert f'request_checkpoint({hollow}, "last.pt")' in code


def test_a_move_behind_the_save_gives_the_final_name() -> None:
    migrated = guarded('os.replace("tmp.pt", "last.pt")', save=f'torch.save({STATE}, "tmp.pt")')
    assert not marked(migrated)
    assert '"epoch": epoch}, "last.pt")' in migrated.section("loop")
    assert "os.replace" not in migrated.section("loop")


def test_a_move_in_front_of_the_save_stays_and_is_marked() -> None:
    before = 'if os.path.exists("last.pt"):\n    os.rename("last.pt", "previous.pt")'
    migrated = guarded("", save=f'torch.save({STATE}, "last.pt")', before=before)
    assert 'os.rename("last.pt", "previous.pt")' in migrated.section("loop")
    assert '"epoch": epoch}, "last.pt")' in migrated.section("loop")
    assert marked(migrated) == ['os.rename("last.pt", "previous.pt")']


# -- counting and removing ---------------------------------------------------------------------------------------------

PRUNE = 'old = sorted(glob.glob(os.path.join(args.output, "*.pt")))\nfor name in old[:-3]:\n    os.remove(name)'
HELPER = """
def prune(folder, keep):
    names = sorted(os.listdir(folder))
    for name in names[:-keep]:
        os.remove(os.path.join(folder, name))
"""


def test_what_counts_checkpoints_before_the_last_is_written_is_marked() -> None:
    migrated = guarded(PRUNE)
    assert marked(migrated) == ['old = sorted(glob.glob(os.path.join(args.output, "*.pt")))']
    assert "one more is kept" in migrated.told()
    assert "remove_checkpoint(name)" in migrated.section("loop")


def test_what_counts_checkpoints_before_the_save_or_behind_the_writing_is_not() -> None:
    assert not marked(guarded("", before=PRUNE))
    assert not marked(guarded("", behind=PRUNE))


def test_a_helper_that_counts_is_marked_where_it_is_called_too_early() -> None:
    early = guarded("prune(args.output, 3)", helpers=HELPER)
    assert marked(early) == ["prune(args.output, 3)"]
    assert "remove_checkpoint(os.path.join(folder, name))" in early.section("helpers")
    assert not marked(guarded("", behind="prune(args.output, 3)\n", helpers=HELPER))


def test_a_helper_that_saves_and_counts() -> None:
    helpers = (
        "def save(state, folder, epoch):\n    torch.save(state, os.path.join(folder, f'{epoch}.pt'))\n"
        "    files = sorted(os.listdir(folder))\n    for name in files[:-3]:\n"
        "        os.remove(os.path.join(folder, name))\n"
    )
    migrated = guarded("", save=f"save({STATE}, args.output, epoch)", helpers=helpers)
    assert marked(migrated) == ["files = sorted(os.listdir(folder))"]


def test_a_list_of_paths_that_the_script_keeps_is_right() -> None:
    text = f"kept.append({PATH})\nif len(kept) > 3:\n    os.remove(kept.pop(0))"
    migrated = guarded(text)
    assert not marked(migrated)
    assert "remove_checkpoint(kept.pop(0))" in migrated.section("loop")


def test_results_beside_the_checkpoints_are_no_checkpoints() -> None:
    helpers = (
        "def dump(result, folder, rank):\n    part = os.path.join(folder, f'part_{rank}.json')\n"
        "    with open(part, 'w') as file:\n        json.dump(result, file)\n    os.remove(part)\n"
    )
    migrated = guarded("dump([], args.output, 0)", helpers=helpers)
    assert "    os.remove(part)\n" in migrated.section("helpers")
    assert "remove_checkpoint" not in migrated.code


def test_a_cleaner_of_others_is_named() -> None:
    assert marked(guarded("cleanup(args.output, keep=3)")) == ["cleanup(args.output, keep=3)"]


def test_a_folder_that_is_looked_at_for_something_else_is_not() -> None:
    assert not marked(guarded('print(os.listdir("/data/images"))'))


def test_a_link_is_no_directory() -> None:
    assert "os.path.isdir(path) and not os.path.islink(path)" in guarded(PRUNE).code


# -- a file of each rank -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ['f"last.rank{rank}.pt"', 'os.path.join(args.output, f"{dist.get_rank()}.pt")'])
def test_a_file_of_each_rank_is_marked_where_it_is_read_too(path: str) -> None:
    migrated = convert(resume=RESUME.replace("args.resume,", f"{path},"), loop=saving(f"torch.save({STATE}, {path})"))
    migrated.said("MG622", "checkpoint = torch.load(", Kind.TODO)
    migrated.said("MG621", "torch.save(", Kind.TODO)
    convert(resume=RESUME, loop=saving(SAVE)).silent("MG629")


# -- loads in other functions ------------------------------------------------------------------------------------------

BEST = """
def evaluate_best(model, path, args):
    checkpoint = torch.load({path}, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    model.eval()
"""


@pytest.mark.parametrize(
    ("saved", "read", "given"),
    [
        ('"best.pt"', '"best.pt"', '""'),
        ('os.path.join(args.output, "best.pt")', 'os.path.join(args.output, "best.pt")', '""'),
        ('"best.pt"', "path", '"best.pt"'),
        ("best", "path", "best"),
    ],
)
def test_a_load_of_the_same_path_in_another_function_reads_the_checkpoint(saved: str, read: str, given: str) -> None:
    migrated = convert(
        helpers=BEST.format(path=read),
        resume=RESUME,
        loop='best = args.output + "/best.pt"\n' + saving(f"if rank == 0:\n    torch.save({STATE}, {saved})"),
        end=f"evaluate_best(model.module, {given}, args)",
    )
    assert f"checkpoint = read_checkpoint({read})" in migrated.section("helpers")
    assert '"model": model.module.state_dict()' in migrated.section("loop")


def test_a_load_that_gets_other_paths_too_is_marked() -> None:
    migrated = convert(
        helpers=BEST.format(path="path"),
        resume=RESUME,
        loop=saving(f'if rank == 0:\n    torch.save({STATE}, "best.pt")'),
        end='evaluate_best(model.module, "best.pt", args)\nevaluate_best(model.module, "pretrained.pt", args)',
    )
    migrated.said("MG622", "checkpoint = torch.load(path", Kind.TODO)


def test_a_variable_of_the_same_name_in_another_function_is_another_matter() -> None:
    migrated = convert(
        helpers="def pretrained(folder):\n    best = folder + '/best.pt'\n    return torch.load(best)\n",
        resume=RESUME,
        loop='best = args.output + "/best.pt"\n' + saving(f"if rank == 0:\n    torch.save({STATE}, best)"),
    )
    assert "return torch.load(best)" in migrated.section("helpers")


@pytest.mark.parametrize("names", ["shutil.copyfile", "shutil.copy", "os.replace"])
def test_a_load_of_the_copy_reads_the_checkpoint_too(names: str) -> None:
    migrated = convert(
        helpers=BEST.format(path="path"),
        resume=RESUME,
        loop=saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")\n    {names}("last.pt", "best.pt")'),
        end='evaluate_best(model.module, "best.pt", args)',
    )
    assert "checkpoint = read_checkpoint(path)" in migrated.section("helpers")
    assert '"model": model.module.state_dict()' in migrated.section("loop")


# -- a path that the caller hands in -----------------------------------------------------------------------------------

KEEPER = """
class Keeper:
    def __init__(self, model, optimizer, folder):
        self.model, self.optimizer, self.folder = model, optimizer, folder
        self.older, self.newer = "", ""

    def write(self, target, epoch):
        state = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": epoch}
        torch.save(state, target)

    def swap(self, source, target):
        os.replace(source, target)

    def double(self, source, target):
        os.link(source, target)

    def keep(self, epoch):
        fresh = os.path.join(self.folder, "fresh.pt")
        last = os.path.join(self.folder, "last.pt")
        self.write(fresh, epoch)
        self.swap(fresh, last)
        self.double(last, os.path.join(self.folder, f"{epoch}.pt"))
        if os.path.exists(self.older):
            print("one more")
        self.older = self.newer
        self.newer = last
"""


@pytest.mark.parametrize("guard", ["keeper is not None", "rank == 0", "keeper is not None and epoch % 2 == 0"])
def test_a_move_of_a_path_that_the_saver_was_handed_finds_nothing_yet(guard: str) -> None:
    loop = "keeper = Keeper(model, optimizer, args.output) if rank == 0 else None\n"
    migrated = convert(helpers=KEEPER, resume=RESUME, loop=loop + saving(f"if {guard}:\n    keeper.keep(epoch)"))
    assert marked(migrated) == ["os.replace(source, target)", "os.link(source, target)"]
    assert "finds no checkpoint here" in migrated.said("MG623", "os.replace(source", Kind.TODO).message


@pytest.mark.parametrize("guard", ["keeper is not None", "rank == 0"])
def test_all_ranks_save_behind_a_guard_that_is_far_up(guard: str) -> None:
    loop = "keeper = None\nif rank == 0:\n    keeper = Keeper(model, optimizer, args.output)\n"
    migrated = convert(helpers=KEEPER, resume=RESUME, loop=loop + saving(f"if {guard}:\n    keeper.keep(epoch)"))
    assert "save_requested_checkpoints(self" not in migrated.section("helpers")
    assert f"    if {guard}:\n        keeper.keep(epoch)\n    save_requested_checkpoints(model)" in migrated.section(
        "loop"
    )


def test_all_ranks_save_behind_a_guard_around_a_loop_over_names() -> None:
    loop = saving(f"if rank == 0:\n    for name in names:\n        torch.save({STATE}, name)")
    migrated = convert(resume=RESUME, loop='names = ["a.pt", "b.pt"]\n' + loop)
    assert "\n    save_requested_checkpoints(model)" in migrated.section("loop")


WRITES = """
def write_out(model, optimizer, epoch, {name}):
    if {name} is not None:
        state = {{"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}
        torch.save(state, "last.pt")
"""


@pytest.mark.parametrize("name", ["writer", "epoch_log"])
@pytest.mark.parametrize("made", ["Log() if rank == 0 else None", "None\nif rank == 0:\n    {name} = Log()"])
def test_an_object_that_rank_zero_alone_has_is_a_guard(name: str, made: str) -> None:
    migrated = convert(
        imports="from logs import Log",
        helpers=WRITES.format(name=name),
        resume=RESUME,
        loop=f"{name} = {made.format(name=name)}\n" + saving(f"write_out(model, optimizer, epoch, {name})"),
    )
    assert "\n    save_requested_checkpoints(model)" in migrated.section("helpers") + migrated.section("loop")
    assert "        save_requested_checkpoints(" not in migrated.code


def test_a_checkpoint_that_is_written_over_is_the_newest(tmp_path: Path) -> None:
    code = convert(resume=RESUME, loop=saving(f'torch.save({STATE}, "last.pt")')).code
    save = next(n for n in ast.parse(code).body if getattr(n, "name", "") == "save_requested_checkpoints")
    ranks = SimpleNamespace(get_rank=lambda: 0, broadcast_object_list=lambda *_, **__: None)
    requests: list[Any] = []
    known: dict[str, Any] = {"os": os, "torch": SimpleNamespace(distributed=ranks), "_checkpoint_requests": requests}
    exec(compile(ast.Module([save], []), "train.py", "exec"), known)  # noqa: S102 - the helper itself is the subject
    last, best = tmp_path / "last.pt", tmp_path / "best.pt"
    for directory, time in ((last, 1), (best, 2)):
        directory.mkdir()
        (directory / "states.pt").touch()
        os.utime(directory, (time, time))

    def write_over(directory: str, tag: str, **_: object) -> None:
        (Path(directory) / tag / "states.pt").write_text("epoch 3")

    requests.append(({"epoch": 3}, str(last)))
    known["save_requested_checkpoints"](SimpleNamespace(save_checkpoint=write_over))
    assert max((last, best), key=os.path.getmtime) == last


def test_an_upload_of_a_buffer_in_memory_takes_no_file() -> None:
    helpers = (
        "def upload(obj, target):\n    buffer = io.BytesIO()\n    torch.save(obj, buffer)\n"
        "    client.upload_fileobj(buffer, target)\n"
    )
    upload = 'upload([], "last.pt")'
    assert not marked(guarded(upload, SAVE_LAST, helpers=f"import io\n\n\n{helpers}"))
    assert marked(guarded(upload, SAVE_LAST, helpers=helpers.replace("io.BytesIO()", "found")))
