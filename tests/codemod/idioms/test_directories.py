"""Checkpoints as the engine's directories: the same lines with other calls, or files with a reason."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import Converted, converted
from tests.codemod.idioms.test_checkpoint import SAVE, SCRIPT, STATE

WRITE = "ds_compat.write_checkpoint(model)"
SAVED = SAVE.replace("torch.save", "ds_compat.save_checkpoint")
RESUME = """if args.resume and os.path.isfile(args.resume):
    state = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["epoch"]"""
HELPER = "def save(model, optimizer, epoch):\n    {}\n\n\n"


def trained(save: str = "pass", *, zero_stage: int | None = None, **parts: str) -> Converted:
    given = dict.fromkeys(("imports", "helpers", "resume", "before", "step", "end"), "") | parts
    model = given.pop("model", "DDP(Net().cuda())")
    indents = {"resume": 4, "before": 4, "step": 12, "end": 4}
    texts = {name: text.replace("\n", "\n" + " " * indents.get(name, 0)) for name, text in given.items()}
    return converted(
        SCRIPT.format(model=model, save=save.replace("\n", "\n" + " " * 8), **texts),
        zero_stage=zero_stage,
        checkpoints="engine",
    )


def why(found: Converted) -> str:
    """Why checkpoints stay files, as the report says it; the conversion is the one without the option."""
    assert not found.parts & {"keep_directories", "save_checkpoint", "write_checkpoint", "load_checkpoint"}
    return found.said("MG638", Kind.KEPT).message.removeprefix("checkpoints stay files: ")


# -- saves -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("guard", ["rank == 0", "not dist.get_rank()", "local_rank in [-1, 0]", "is_main_process()"])
def test_a_guarded_save_is_written_by_all_ranks_behind_its_guard(guard: str, stage: int) -> None:
    found = trained(f"if {guard}:\n    {SAVE}\n    print('saved')", zero_stage=stage)
    assert f"        if {guard}:\n            {SAVED}\n            print('saved')\n        {WRITE}\n" in found.text
    assert "    ds_compat.keep_directories(model)\n" in found.text
    assert "gather_checkpoint" not in found.parts
    assert not found.todos
    told = found.said("MG636", Kind.KEPT)
    assert told.message == "checkpoints are directories now; at ZeRO 1-3 only the same number of processes resumes one"


@pytest.mark.parametrize(
    ("save", "text"),
    [
        (f"state = {STATE}\ntorch.save(state, 'a.pt')", f"ds_compat.save_checkpoint(state, 'a.pt')\n        {WRITE}\n"),
        (
            f"if epoch % 5 == 0:\n    if rank == 0:\n        {SAVE}",
            f"            if rank == 0:\n                {SAVED}\n            {WRITE}\n",
        ),
        (
            f"if rank == 0 and epoch % 5 == 0:\n    {SAVE}",
            f"            {SAVED}\n        if epoch % 5 == 0:\n            {WRITE}\n",
        ),
        (
            f"if rank == 0 and epoch % 5 == 0:\n    {SAVE}\n    epoch += 1",
            f"            {SAVED}\n            epoch += 1\n        {WRITE}\n",
        ),
        (
            f"state = {STATE}\nif rank == 0:\n    torch.save(state, 'last.pt')",
            f"            ds_compat.save_checkpoint(state, 'last.pt')\n        {WRITE}\n",
        ),
        (
            "if rank == 0:\n    save(model, optimizer, epoch)",
            f"        if rank == 0:\n            save(model, optimizer, epoch)\n        {WRITE}\n",
        ),
        (
            "save(model, optimizer, epoch) if rank == 0 else None",
            f"        save(model, optimizer, epoch) if rank == 0 else None\n        {WRITE}\n",
        ),
        (
            (
                "state = {}\nstate['m'] = model.state_dict()\nstate.update(o=optimizer.state_dict())\n"
                "if rank == 0:\n    torch.save(dict(state=state, args=args), Path('out') / 'a.pt')"
            ),
            f"ds_compat.save_checkpoint(dict(state=state, args=args), Path('out') / 'a.pt')\n        {WRITE}\n",
        ),
    ],
)
def test_where_all_ranks_write(save: str, text: str) -> None:
    found = trained(save, helpers=HELPER.format(SAVE))
    assert text in found.text
    assert not found.todos


def test_a_helper_with_the_guard_in_it_writes_there() -> None:
    found = trained("save(model, optimizer, epoch)", helpers=HELPER.format(f"if dist.get_rank() == 0:\n        {SAVE}"))
    assert f"    if dist.get_rank() == 0:\n        {SAVED}\n    {WRITE}\n" in found.text


def test_a_test_that_the_save_changes_does_not_guard_the_write() -> None:
    helper = "class Best:\n    loss = 9.0\n\n\n" + HELPER.format(f"Best.loss = 1.0\n    {SAVE}")
    found = trained("if Best.loss > 3 and rank == 0:\n    save(model, optimizer, epoch)", helpers=helper)
    assert f"            save(model, optimizer, epoch)\n        {WRITE}\n" in found.text


def test_names_of_torch_save_make_no_difference() -> None:
    found = trained(f"if rank == 0:\n    write({STATE}, 'a.pt')", imports="from torch import save as write")
    assert f"ds_compat.save_checkpoint({STATE}, 'a.pt')" in found.text


@pytest.mark.parametrize("stage", [2, 3])
def test_weights_alone_stay_files(stage: int) -> None:
    weights = "torch.save(model.module.state_dict(), 'best.pt')"
    found = trained(f"if rank == 0:\n    {SAVE}\nif rank == 0:\n    {weights}", zero_stage=stage)
    assert SAVED in found.text
    assert weights in found.text
    gathers = "ds_compat.gather_checkpoint(model, optimizer=False)\n        if rank == 0:\n            torch.save"
    assert (gathers in found.text) == (stage == 3)


def test_a_function_that_saves_both_decides_when_it_runs() -> None:
    found = trained(
        "write(model.module.state_dict(), 'best.pt')\n" + SAVE.replace("torch.save", "write"),
        helpers="def write(*args):\n    if dist.get_rank() == 0:\n        torch.save(*args)\n\n\n",
    )
    assert "    if dist.get_rank() == 0:\n        ds_compat.save_checkpoint(*args)\n" in found.text


@pytest.mark.parametrize(
    "save", ["pass", 'torch.save(model.module.state_dict(), "a.pt")', 'torch.save({"epoch": epoch}, "a.pt")']
)
def test_without_the_optimizers_state_nothing_changes(save: str) -> None:
    found = trained(save)
    assert found.status is Status.CONVERTED
    assert not found.codes(Kind.KEPT) & {"MG636", "MG637", "MG638"}
    assert found.text == converted(SCRIPT.format(model="DDP(Net().cuda())", save=save, **dict.fromkeys(
        ("imports", "helpers", "resume", "before", "step", "end"), ""))).text  # fmt: skip


# -- loads, and what else happens to a path ----------------------------------------------------------------------------


def test_what_the_optimizer_loads_is_read_from_a_directory_too() -> None:
    found = trained(f"if rank == 0:\n    {SAVE}", resume=RESUME)
    expected = RESUME.replace("os.path.isfile", "os.path.exists").replace("torch.load", "ds_compat.load_checkpoint")
    assert expected.replace("\n", "\n    ") in found.text
    assert not found.todos


def test_before_the_engine_too() -> None:
    load = 'state = torch.load("last.pt")\nmodel.load_state_dict(state["model"])'
    model = "Net().cuda()\n    " + load.replace("\n", "\n    ")
    found = trained(SAVE, model=model, resume='optimizer.load_state_dict(state["optimizer"])\nmodel = DDP(model)')
    assert 'state = ds_compat.load_checkpoint("last.pt")' in found.text
    assert not found.todos


def test_other_reads_of_the_same_path_are_changed_and_those_of_others_are_not() -> None:
    found = trained(
        f"if rank == 0:\n    {SAVE}",
        end='model.module.load_state_dict(torch.load("last.pt")["model"])\nprint(torch.load("other.pt"))',
    )
    assert 'load_state_dict(ds_compat.load_checkpoint("last.pt")["model"])' in found.text
    assert 'print(torch.load("other.pt"))' in found.text


def test_a_restore_that_nothing_is_seen_to_call_reads_directories_too() -> None:
    helper = (
        "def restore(path, model, optimizer):\n    if not os.path.isfile(path):\n        return\n"
        "    state = torch.load(path)\n"
        '    model.load_state_dict(state["model"])\n    optimizer.load_state_dict(state["optimizer"])\n\n\n'
        "def weights(path, model):\n    model.load_state_dict(torch.load(path))\n\n\n"
    )
    found = trained(f"if rank == 0:\n    {SAVE}", helpers=helper)
    assert (
        "    if not os.path.exists(path):\n        return\n    state = ds_compat.load_checkpoint(path)\n" in found.text
    )
    assert "    model.load_state_dict(torch.load(path))\n" in found.text


@pytest.mark.parametrize(
    ("before", "after", "imports"),
    [
        ('print(os.path.isfile("last.pt"))', 'print(os.path.exists("last.pt"))', ""),
        ('print(isfile("last.pt"))', 'print(os.path.exists("last.pt"))', "from os.path import isfile"),
        ('print(Path("last.pt").is_file())', 'print(Path("last.pt").exists())', ""),
        ('shutil.copyfile("last.pt", "best.pt")', 'ds_compat.copy_checkpoint("last.pt", "best.pt")', "import shutil"),
        ('os.remove("last.pt")', 'ds_compat.remove_checkpoint("last.pt")', ""),
        ("os.remove(args.resume)", "ds_compat.remove_checkpoint(args.resume)", ""),
        ('os.remove("log.txt")', 'os.remove("log.txt")', ""),
        ('print(os.path.isfile("log.txt"))', 'print(os.path.isfile("log.txt"))', ""),
    ],
)
def test_what_happens_to_a_path(before: str, after: str, imports: str) -> None:
    found = trained(f"if rank == 0:\n    {SAVE}\n    {before}", imports=imports)
    assert f"            {after}\n" in found.text
    assert not found.todos


def test_an_unread_function_that_gets_a_path_is_named() -> None:
    found = trained(f"if rank == 0:\n    {SAVE}\n    fill('last.pt')\n    fill('other.pt')")
    told = found.said("MG637", Kind.KEPT)
    assert told.message == "fill is given the path of a checkpoint, which is a directory"
    assert len([one for one in found.changes if one.code == "MG637"]) == 1


# -- what stays a file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("save", "reason"),
    [
        (f"if rank != 0:\n    continue\n{SAVE}", "no line behind this save is reached by all ranks"),
        (f"if rank == 0:\n    {SAVE}\n    break", "no line behind this save is reached by all ranks"),
        (f"torch.save({STATE}, f'last{{rank}}.pt')", "each rank saves at a path of its own"),
        (
            f"with open('a.pt', 'wb') as file:\n    torch.save({STATE}, file)",
            "it is saved into an open file, not at a path",
        ),
        (
            (
                "if rank == 0:\n    torch.save(optimizer.state_dict(), 'o.pt')\n"
                "    torch.save(model.module.state_dict(), 'm.pt')"
            ),
            "the optimizer's state is saved without the weights",
        ),
        (
            f"kept = optimizer.state_dict()\nif rank == 0:\n    {SAVE}",
            "the optimizer's state goes elsewhere than into the dictionary of a torch.save",
        ),
        (f"if rank == 0:\n    {SAVE}\n    os.replace('last.pt', 'a.pt')", "replace needs a file"),
        (f"if rank == 0:\n    {SAVE}\n    print(open('last.pt').read())", "open needs a file"),
        (
            f"if rank == 0:\n    {SAVE}\nsave_model(args, epoch, model, optimizer)",
            "a function that is not read is given the model and the optimizer",
        ),
    ],
)
def test_what_cannot_be_a_directory_stays_a_file_with_a_reason(save: str, reason: str) -> None:
    assert why(trained(save)) == reason


@pytest.mark.parametrize(
    ("resume", "reason"),
    [
        ("optimizer.load_state_dict(fill(args.resume))", "what the optimizer loads is not read by torch.load itself"),
        (
            'optimizer.load_state_dict(torch.load("o.pt"))',
            "the optimizer's state is loaded without the weights beside it",
        ),
        (RESUME.replace("if args", "if rank == 0 and args"), "only some ranks load the optimizer's state"),
        (
            RESUME.replace("torch.load(args.resume,", "torch.load(open(args.resume, 'rb'),"),
            "it is read from an open file",
        ),
    ],
)
def test_a_load_that_cannot_be_of_a_directory_keeps_files(resume: str, reason: str) -> None:
    assert why(trained(f"if rank == 0:\n    {SAVE}", resume=resume)).startswith(reason)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (f"dist.destroy_process_group()\nif rank == 0:\n    {SAVE}", "the process group has ended before this save"),
        (
            f"try:\n    model(data).mean().backward()\n    optimizer.step()\nfinally:\n    {SAVE}",
            "a rank that fails gets to this save alone",
        ),
    ],
)
def test_a_save_at_the_end_that_ranks_do_not_reach_together_keeps_files(end: str, reason: str) -> None:
    assert why(trained(end=end)) == reason


def test_a_save_by_a_metric_of_each_rank_is_spoken_of() -> None:
    found = trained(f"if loss.item() < 3:\n    {SAVE}")
    assert f"            {SAVED}\n        {WRITE}\n" in found.text
    assert "by a value of their own" in found.said("MG636", Kind.KEPT).message + str(found.changes)


def test_a_rank_that_fails_alone_keeps_files() -> None:
    end = f"try:\n    loss = model(data).mean()\n    loss.backward()\n    optimizer.step()\nexcept OSError:\n    {SAVE}"
    assert why(trained(end=end)) == "not all ranks get to this save"


def test_a_save_that_one_way_guards_is_written_where_each_way_has_all_ranks() -> None:
    found = trained(
        "save(model, optimizer, epoch)",
        helpers=HELPER.format(f"if dist.get_rank() == 0:\n        {SAVE}"),
        end="if rank == 0:\n    save(model, optimizer, 9)",
    )
    assert "        save(model, optimizer, epoch)\n        ds_compat.write_checkpoint(model)\n" in found.text
    assert "    if rank == 0:\n        save(model, optimizer, 9)\n    ds_compat.write_checkpoint(model)\n" in found.text
