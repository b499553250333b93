"""Resume checkpoints, exports, and what scripts do with their files."""

from __future__ import annotations

import ast
import os
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_section, convert
from tests.codemod.steps.checkpoint_scripts import HOLLOW, RESUME, STATE, saved, saving

# -- what stays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'torch.save(model.module.state_dict(), "weights.pt")\n',
        'if rank == 0:\n    torch.save(model.module.state_dict(), os.path.join(args.output, "weights.pt"))\n',
        'if rank == 0:\n    torch.save({"model": model.module.state_dict(), "epoch": 3}, "weights.pt")\n',
    ],
)
def test_an_export_of_the_weights_stays(text: str) -> None:
    migrated = check_kept("end", text)
    migrated.said("MG624", "torch.save(", Kind.KEPT)
    assert "request_checkpoint" not in migrated.code


def test_files_that_hold_neither_weights_nor_state_stay() -> None:
    migrated = check_kept("end", 'torch.save({"accuracy": 0.5}, "scores.pt")\nprint(os.path.isfile("scores.pt"))\n')
    migrated.silent("MG621", "MG623", "MG624")


def test_weights_loaded_before_the_wrap_stay() -> None:
    migrated = check_section(
        "wrap",
        """
        net = Net()
        net.load_state_dict(torch.load("pretrained.pt"))
        model = DDP(net.cuda())
        """,
        """
        net = Net()
        net.load_state_dict(torch.load("pretrained.pt"))
        model = net.cuda()
        """,
    )
    migrated.silent("MG625", "MG622")


# -- saving ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guard",
    [
        "if rank == 0:",
        "if dist.get_rank() == 0:",
        "if local_rank == 0:",
        "if not args.distributed or rank == 0:",
        "if is_main_process():",
        "if args.is_master:",
    ],
)
def test_a_save_under_a_rank_guard_is_written_behind_it(guard: str) -> None:
    migrated = check_section(
        "loop",
        saving(f'{guard}\n    torch.save({STATE}, "last.pt")'),
        saved(f'{guard}\n    request_checkpoint({HOLLOW}, "last.pt")\nsave_requested_checkpoints(model)'),
        resume=RESUME,
        imports="from utils import is_main_process",
    )
    migrated.said("MG621", "torch.save(", Kind.CONVERTED)


def test_a_save_without_a_guard_is_written_at_once() -> None:
    check_section(
        "loop",
        saving(f'torch.save({STATE}, "last.pt")'),
        saved(f'request_checkpoint({HOLLOW}, "last.pt")\nsave_requested_checkpoints(model)'),
        resume=RESUME,
    )


def test_a_condition_that_all_ranks_share_guards_the_writing_too() -> None:
    check_section(
        "loop",
        saving(f'if rank == 0 and epoch % 5 == 0:\n    torch.save({STATE}, "last.pt")'),
        saved(
            f'if rank == 0 and epoch % 5 == 0:\n    request_checkpoint({HOLLOW}, "last.pt")\n'
            "if epoch % 5 == 0:\n    save_requested_checkpoints(model)"
        ),
        resume=RESUME,
    )


def test_nested_guards_are_left_behind() -> None:
    check_section(
        "loop",
        saving(f'if epoch % 5 == 0:\n    if rank == 0:\n        torch.save({STATE}, "last.pt")'),
        saved(
            f'if epoch % 5 == 0:\n    if rank == 0:\n        request_checkpoint({HOLLOW}, "last.pt")\n'
            "    save_requested_checkpoints(model)"
        ),
        resume=RESUME,
    )


def test_a_best_score_under_the_rank_guard() -> None:
    migrated = convert(
        resume=RESUME,
        loop="best = 0\n"
        + saving(
            f"""
if rank == 0:
    score = evaluate(model)
    if score > best:
        best = score
        torch.save({STATE}, "best.pt")
"""
        ),
        imports="from utils import evaluate",
    )
    assert migrated.section("loop").endswith(
        f'            request_checkpoint({HOLLOW}, "best.pt")\n    save_requested_checkpoints(model)\n'
    )


@pytest.mark.parametrize("where", ["guard in the helper", "guard around the call", "early return"])
def test_a_helper_that_saves_is_called_under_the_guard_and_all_ranks_write_behind_it(where: str) -> None:
    body = {
        "guard in the helper": "    if dist.get_rank() == 0:\n        torch.save(state, path)\n",
        "guard around the call": "    torch.save(state, path)\n",
        "early return": "    if dist.get_rank() != 0:\n        return\n    torch.save(state, path)\n",
    }[where]
    call = f'save_checkpoint({STATE}, "last.pt")'
    migrated = convert(
        helpers=f"def save_checkpoint(state, path):\n{body}",
        resume=RESUME,
        loop=saving(f"if rank == 0:\n    {call}" if where == "guard around the call" else call),
    )
    assert "request_checkpoint(state, path)" in migrated.section("helpers")
    assert migrated.section("loop").endswith("    save_requested_checkpoints(model)\n")
    assert "        save_requested_checkpoints" not in migrated.section("loop")


def test_save_on_master_of_the_references_is_a_save() -> None:
    migrated = convert(
        imports="import utils",
        resume=RESUME,
        loop=saving(f'utils.save_on_master({STATE}, os.path.join(args.output, "model.pth"))'),
    )
    assert migrated.section("loop").endswith(
        f'    request_checkpoint({HOLLOW}, os.path.join(args.output, "model.pth"))\n'
        "    save_requested_checkpoints(model)\n"
    )


def test_a_dictionary_filled_step_by_step_is_a_checkpoint() -> None:
    migrated = convert(
        resume=RESUME,
        loop=saving(
            """
state = {"model": model.module.state_dict()}
state["optimizer"] = optimizer.state_dict()
state["epoch"] = epoch
if rank == 0:
    torch.save(state, "last.pt")
"""
        ),
    )
    code = migrated.section("loop")
    assert 'state = {"model": "saved by the engine"}\n    state["optimizer"] = "saved by the engine"\n' in code
    assert code.endswith('        request_checkpoint(state, "last.pt")\n    save_requested_checkpoints(model)\n')


def test_the_state_of_scheduler_scaler_and_averages_travels_as_it_was() -> None:
    migrated = convert(
        resume=RESUME,
        optimizer="""
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
            """,
        loop=saving(
            'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), '
            '"scheduler": scheduler.state_dict(), "rng": torch.get_rng_state(), "args": args, "n": 1}, "last.pt")'
        ),
    )
    assert (
        'request_checkpoint({"model": "saved by the engine", "optimizer": "saved by the engine", '
        '"scheduler": scheduler.state_dict(), "rng": torch.get_rng_state(), "args": args, "n": 1}, "last.pt")'
    ) in migrated.section("loop")


def test_what_the_script_saves_travels_under_one_key() -> None:
    code = convert(resume=RESUME, loop=saving(f'torch.save({STATE}, "last.pt")')).code
    assert 'client_state={"script": state}' in code
    assert 'weights_only=False)["script"]' in code


def test_a_class_that_saves_snapshots() -> None:
    migrated = convert(
        helpers="""
            class Trainer:
                def __init__(self, model, optimizer, loader, path):
                    self.model = model
                    self.optimizer = optimizer
                    self.loader = loader
                    self.path = path
                    self.epoch = 0
                    if os.path.exists(path):
                        self.load()

                def load(self):
                    snapshot = torch.load(self.path, map_location="cpu")
                    self.model.module.load_state_dict(snapshot["model"])
                    self.optimizer.load_state_dict(snapshot["optimizer"])
                    self.epoch = snapshot["epoch"]

                def save(self):
                    snapshot = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(),
                                "epoch": self.epoch}
                    torch.save(snapshot, self.path)

                def train(self):
                    for x, y in self.loader:
                        loss = F.cross_entropy(self.model(x), y)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                    if dist.get_rank() == 0:
                        self.save()
            """,
        loop='Trainer(model, optimizer, train_loader, "snapshot.pt").train()',
    )
    code = migrated.section("helpers")
    assert (
        "snapshot = read_checkpoint(self.path)\n            resume_engine(self.model)\n"
        in code.replace("        snapshot", "            snapshot")
        or "resume_engine(self.model)" in code
    )
    assert "        request_checkpoint(snapshot, self.path)\n" in code
    assert "            self.save()\n        save_requested_checkpoints(self.model)\n" in code


def test_what_gets_the_path_out_of_a_loop_is_named() -> None:
    migrated = convert(
        imports="from utils import listdir, strip",
        loop='last, best = "last.pt", "best.pt"\n'
        + saving(f"torch.save({STATE}, last)\nif epoch == 0:\n    torch.save({STATE}, best)")
        + "for path in last, best:\n    strip(path)\n    print(path)\npath = args.output\nlistdir(path)\n",
    )
    assert "listdir gets" not in migrated.told()
    told = migrated.said("MG623", "    strip(path)", Kind.TODO)
    assert told.message == "strip gets a directory now: a DeepSpeed checkpoint is one"


def test_a_loop_over_other_paths_is_another_matter() -> None:
    migrated = convert(
        imports="from utils import strip",
        loop='last = "last.pt"\n' + saving(f"torch.save({STATE}, last)") + 'for path in ("a", "b"):\n    strip(path)\n',
    )
    assert "strip gets" not in migrated.told()


BY_PARAMETER = """
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                parameter.grad.mul_(0.5)
            optimizer.step()
        moments = optimizer.state_dict()
        torch.save({"moments": moments, "epoch": epoch}, "last.pt")
    """


def test_a_file_stays_a_file_where_nothing_is_spread_over_the_ranks() -> None:
    """At a ZeRO stage 0 that the script itself asks for, its own saves and loads of the optimizer are whole."""
    resume = """
        if args.resume:
            parts = torch.load(args.resume)
            message = optimizer.load_state_dict(parts["moments"])
            print(message)
        """
    migrated = convert(resume=resume, loop=BY_PARAMETER)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "parts = torch.load(args.resume)\n" in migrated.code
    migrated.said("MG626", "optimizer.load_state_dict", Kind.KEPT)
    migrated.said("MG627", "moments = optimizer.state_dict()", Kind.KEPT)
    sharded = convert(resume=resume, loop=BY_PARAMETER.replace("parameter.grad.mul_(0.5)", "pass"))
    sharded.said("MG627", "moments = optimizer.state_dict()", Kind.TODO)
    sharded.said("MG622", "optimizer.load_state_dict", Kind.TODO)


def test_a_request_keeps_what_the_dictionary_held_then() -> None:
    """``torch.save`` had written it before the script took an entry out and saved the rest under another name."""
    migrated = convert(
        loop=saving(
            f'if rank == 0:\n    state = {STATE}\n    torch.save(state, "last.pt")\n    state["epoch"] = None\n'
            '    state.pop("optimizer")\n    torch.save(state, "best.pt")'
        )
    )
    tree = ast.parse(migrated.code)
    request = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "request_checkpoint")
    known: dict[str, Any] = {"os": os, "_checkpoint_requests": []}
    exec(compile(ast.Module([request], []), "train.py", "exec"), known)  # noqa: S102 - the helper itself is the subject
    state = {"epoch": 3, "optimizer": "saved by the engine"}
    known["request_checkpoint"](state, "last.pt")
    state["epoch"] = None  # type: ignore[assignment]
    state.pop("optimizer")
    assert known["_checkpoint_requests"] == [({"epoch": 3, "optimizer": "saved by the engine"}, "last.pt")]


def test_a_file_of_the_script_before_is_not_in_the_way_of_the_directory() -> None:
    code = convert(resume=RESUME, loop=saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")')).code
    moved = code.index('os.replace(path, path + ".before")')
    assert code.index("if torch.distributed.get_rank() == 0 and os.path.isfile(path):") < moved
    assert moved < code.index("torch.distributed.broadcast_object_list(paths, src=0)")


# -- ranks that leave before a save ------------------------------------------------------------------------------------

PUT = f"def put(model, optimizer, epoch, path):\n    torch.save({STATE}, path)\n"
LEFT = "if dist.get_rank() != 0:\n        return\n    "
LEAVES = f"{LEFT}torch.save({STATE}, path)\n"


@pytest.mark.parametrize(
    "helpers",
    [
        f"def end(model, optimizer, epoch, path):\n    {LEAVES}",
        f"@rank_zero_only\ndef end(model, optimizer, epoch, path):\n    torch.save({STATE}, path)\n",
        f"@master_only\ndef end(model, optimizer, epoch, path):\n    put(model, optimizer, epoch, path)\n\n\n{PUT}",
        f"def end(model, optimizer, epoch, path):\n    {LEFT}put(model, optimizer, epoch, path)\n\n\n{PUT}",
    ],
)
def test_all_ranks_write_where_some_have_left_the_function_that_saves(helpers: str) -> None:
    migrated = convert(
        imports="from launch import master_only, rank_zero_only",
        helpers=helpers,
        resume=RESUME,
        loop=saving("end(model, optimizer, epoch, 'last.pt')"),
    )
    assert "save_requested_checkpoints" not in migrated.section("helpers").partition("def end")[2]
    assert "end(model, optimizer, epoch, 'last.pt')\n    save_requested_checkpoints(model)" in migrated.section("loop")


def test_a_guard_further_up_than_the_next_caller() -> None:
    helpers = "def write(model, optimizer, epoch, path):\n    put(model, optimizer, epoch, path)\n\n\n" + PUT
    guarded = "if rank == 0:\n    write(model, optimizer, epoch, 'last.pt')"
    migrated = convert(helpers=helpers, resume=RESUME, loop=saving(guarded))
    assert migrated.section("loop").endswith(
        f"    {guarded.replace(chr(10), chr(10) + '    ')}\n    save_requested_checkpoints(model)\n"
    )


def test_a_save_behind_a_continue_of_other_ranks_is_written_by_them_before() -> None:
    migrated = convert(resume=RESUME, loop=saving(f"if rank != 0:\n    continue\ntorch.save({STATE}, 'last.pt')"))
    assert "save_requested_checkpoints(model)\n        continue\n" in migrated.section("loop")


def test_a_continue_of_all_ranks_is_none() -> None:
    migrated = convert(
        resume=RESUME, loop=saving(f"if epoch < 3:\n    continue\nif rank == 0:\n    torch.save({STATE}, 'last.pt')")
    )
    assert "save_requested_checkpoints(model)" in migrated.section("loop")


def test_a_resume_that_only_some_ranks_come_to_is_marked() -> None:
    helpers = f"def load(model, optimizer, path):\n    {LEFT}{{}}"
    body = (
        "state = torch.load(path)\n    model.load_state_dict(state['model'])\n"
        "    optimizer.load_state_dict(state['optimizer'])\n"
    )
    migrated = convert(helpers=helpers.format(body), resume="load(model, optimizer, 'last.pt')", loop=saving(""))
    assert "waits for all" in migrated.said("MG622", "optimizer.load_state_dict", Kind.TODO).message
