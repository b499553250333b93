"""Resuming, what is left to the person, and stage 3."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_section, convert
from tests.codemod.steps.checkpoint_scripts import HOLLOW, RESUME, STATE, saved, saving

RESUMED = """
start_epoch = 0
if args.resume:
    checkpoint = read_checkpoint(args.resume)
    resume_engine(model)
    start_epoch = checkpoint["epoch"] + 1
"""


# -- loading -----------------------------------------------------------------------------------------------------------


def test_a_resume_behind_the_engine() -> None:
    migrated = check_section("resume", RESUME, RESUMED, loop=saving(f'torch.save({STATE}, "last.pt")'))
    migrated.said("MG622", "torch.load(", Kind.CONVERTED)
    migrated.said("MG622", "model.module.load_state_dict", Kind.CONVERTED)
    migrated.said("MG622", "optimizer.load_state_dict", Kind.CONVERTED)


@pytest.mark.parametrize("limit", ["args.clip", "0.5"])
def test_after_a_resume_the_engine_clips_by_the_limit_of_this_run(limit: str) -> None:
    clipped = saving(f'torch.save({STATE}, "last.pt")').replace(
        "optimizer.step()", f"torch.nn.utils.clip_grad_norm_(model.parameters(), {limit})\n        optimizer.step()"
    )
    assert "engine.optimizer.clip_grad = engine.gradient_clipping()" in convert(resume=RESUME, loop=clipped).code
    unclipped = convert(resume=RESUME, loop=saving(f'torch.save({STATE}, "last.pt")'))
    assert "clip_grad" not in unclipped.code


def test_a_resume_before_the_wrap_is_finished_behind_the_engine() -> None:
    migrated = convert(
        wrap="net = Net().cuda()",
        optimizer="""
            optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
            start_epoch = 0
            if args.resume:
                checkpoint = torch.load(args.resume, map_location="cpu")
                net.load_state_dict(checkpoint["model"])
                optimizer.load_state_dict(checkpoint["optimizer"])
                start_epoch = checkpoint["epoch"]
            model = DDP(net)
            """,
        loop=saving(f'torch.save({STATE}, "last.pt")'),
    )
    code = migrated.section("optimizer")
    assert (
        'checkpoint = read_checkpoint(args.resume)\n    net.load_state_dict(checkpoint["model"])\n    start_epoch'
    ) in code
    assert code.endswith("resume_engine(model)\n")
    assert '"model": model.module.state_dict(), "optimizer": "saved by the engine"' in migrated.section("loop")


def test_a_checkpoint_that_is_read_where_the_optimizer_takes_it_is_still_read() -> None:
    load = 'optimizer.load_state_dict(torch.load("optimizer.pt"))'
    wrap = 'net = Net()\nnet.load_state_dict(torch.load("net.pt"))\nmodel = DDP(net.cuda())'
    check_section("resume", load, 'read_checkpoint("optimizer.pt")\nresume_engine(model)', wrap=wrap)
    guarded, after = (
        f"if rank == 0:\n    {load}\n",
        'if rank == 0:\n    read_checkpoint("optimizer.pt")\nresume_engine(model)',
    )
    check_section("resume", guarded, after, wrap=wrap)


def test_a_checkpoint_that_the_optimizer_takes_before_the_wrap_is_still_read() -> None:
    migrated = convert(
        wrap='net = Net().cuda()\nnet.load_state_dict(torch.load("net.pt"))',
        optimizer="""
            optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
            if os.path.isfile("optimizer.pt"):
                optimizer.load_state_dict(torch.load("optimizer.pt"))
            model = DDP(net)
            """,
    )
    code = migrated.section("optimizer")
    assert 'if os.path.exists("optimizer.pt"):\n    read_checkpoint("optimizer.pt")\n' in code
    assert code.endswith("resume_engine(model)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("os.path.isfile(args.resume)", "os.path.exists(args.resume)"),
        ("args.resume and os.path.isfile(args.resume)", "args.resume and os.path.exists(args.resume)"),
        ("os.path.exists(args.resume)", "os.path.exists(args.resume)"),
    ],
)
def test_a_checkpoint_that_has_to_be_a_file_has_to_exist(before: str, after: str) -> None:
    migrated = check_section(
        "resume", RESUME.replace("if args.resume", f"if {before}"), RESUMED.replace("if args.resume", f"if {after}")
    )
    if before != after:
        migrated.said("MG623", before, Kind.CONVERTED)


def test_a_path_that_is_written_in_another_way_has_to_exist_too() -> None:
    before = "os.path.isfile(os.path.join(args.output, 'last.pt'))"
    migrated = convert(
        resume=RESUME.replace("if args.resume", f"if {before}").replace(
            "torch.load(args.resume", 'torch.load(os.path.join(args.output, "last.pt")'
        )
    )
    assert "isfile" not in migrated.code
    migrated.said("MG623", before, Kind.CONVERTED)


def test_a_file_of_something_else_beside_the_checkpoint_stays_one() -> None:
    migrated = convert(
        resume='bank_path = os.path.join(args.output, "bank.pth")\nbank = torch.zeros(4)\n'
        'if os.path.isfile(bank_path):\n    bank = torch.load(bank_path)["bank"]\n' + RESUME,
        end='torch.save({"bank": bank}, bank_path)',
    )
    assert "if os.path.isfile(bank_path):" in migrated.code


def test_a_second_load_of_the_same_path_reads_the_checkpoint_too() -> None:
    migrated = convert(
        resume="run_id = torch.load(args.resume).get('run') if args.resume else None\n" + RESUME,
    )
    assert "run_id = read_checkpoint(args.resume, resume=False).get('run') if args.resume else None" in migrated.code


def test_a_path_object_that_has_to_be_a_file_has_to_exist() -> None:
    migrated = convert(
        imports="from pathlib import Path",
        resume=RESUME.replace("start_epoch = 0", 'start_epoch = 0\npath = Path(args.output) / "last.pt"', 1)
        .replace("if args.resume", "if path.is_file()")
        .replace("torch.load(args.resume", "torch.load(path"),
    )
    assert "if path.exists():" in migrated.section("resume")


def test_a_copy_of_the_checkpoint_is_another_request() -> None:
    check_section(
        "loop",
        saving(
            f'if rank == 0:\n    state = {STATE}\n    torch.save(state, "last.pt")\n'
            '    shutil.copyfile("last.pt", "best.pt")'
        ),
        saved(
            f'if rank == 0:\n    state = {HOLLOW}\n    request_checkpoint(state, "last.pt")\n'
            '    request_checkpoint(state, "best.pt")\nsave_requested_checkpoints(model)'
        ),
        resume=RESUME,
    )


def test_an_old_checkpoint_is_removed_as_a_directory() -> None:
    migrated = convert(
        resume=RESUME,
        loop=saving(f'if rank == 0:\n    torch.save({STATE}, f"{{epoch}}.pt")\n    os.remove(f"{{epoch - 5}}.pt")'),
    )
    assert 'remove_checkpoint(f"{epoch - 5}.pt")' in migrated.section("loop")


def test_old_checkpoints_that_another_function_removes_are_directories() -> None:
    migrated = convert(
        imports="from pathlib import Path",
        helpers="""
            def cleanup_checkpoints(files):
                for file in files[:-1]:
                    try:
                        os.remove(file)
                    except OSError as error:
                        print(error)


            def tidy(folder, names):
                for name in names:
                    (Path(folder) / f"{name}.pth").unlink()
                os.remove("training.lock")
            """,
        loop=saving(f'if rank == 0:\n    torch.save({STATE}, f"{{epoch}}.pt")'),
        end='cleanup_checkpoints(["a.pt"])\ntidy("runs", [])',
    )
    code = migrated.section("helpers")
    assert "            remove_checkpoint(file)\n" in code
    assert '        remove_checkpoint(Path(folder) / f"{name}.pth")\n' in code
    assert 'os.remove("training.lock")' in code
    migrated.said("MG623", "os.remove(file)")


def test_who_gets_the_path_in_a_loop_gets_a_directory() -> None:
    migrated = convert(
        imports="from utils import strip_optimizer",
        loop='last, best = "last.pt", "best.pt"\n' + saving(f"if rank == 0:\n    torch.save({STATE}, last)").lstrip(),
        end="for file in (last, best):\n    strip_optimizer(file)",
    )
    migrated.said("MG623", "strip_optimizer(file)", Kind.TODO)


STRIP = """
    def strip(file, to=""):
        parts = torch.load(file, map_location="cpu")
        torch.save({"weights": parts["model"]}, to or file)


    def compare(name, files):
        for file in files if isinstance(files, list) else [files]:
            print(name, sorted(torch.load(file)["model"]))


    def size(file):
        print(file, len(os.listdir(file)))
    """


def test_a_function_of_the_project_that_loads_the_file_reads_the_checkpoint() -> None:
    migrated = convert(
        helpers=STRIP,
        resume=RESUME,
        loop='last, best = "last.pt", "best.pt"\n' + saving(f"if rank == 0:\n    torch.save({STATE}, last)").lstrip(),
        end='for file in (last, best):\n    strip(file)\ncompare("last", last)\nsize(last)',
    )
    assert "read_checkpoint(file, resume=False)" in migrated.section("helpers")
    written = migrated.said("MG623", 'torch.save({"weights"', Kind.TODO)
    assert written.message.startswith("torch.save gets a directory now")
    assert not [c for c in migrated.changes if c.message.startswith("size ")]


def test_a_checkpoint_that_all_ranks_have_written_is_there() -> None:
    """``exists`` asks too early under the guard, and not behind the place where all ranks save."""
    migrated = convert(
        resume=RESUME,
        loop='last = "last.pt"\n'
        + saving(f"if rank == 0:\n    torch.save({STATE}, last)\n    print(os.path.getsize(last))").lstrip(),
        end="if os.path.exists(last):\n    print(last)",
    )
    migrated.said("MG623", "print(os.path.getsize(last))", Kind.TODO)
    assert [c.line for c in migrated.changes if c.code == "MG623" and c.kind is Kind.TODO] == [
        next(n for n, text in enumerate(migrated.before.splitlines(), 1) if "getsize(last)" in text)
    ]


def test_other_readers_of_checkpoints_are_told_of_though_the_script_resumes() -> None:
    line = f'torch.save({STATE}, "last.pt")'
    migrated = convert(resume=RESUME, loop=saving(f"if rank == 0:\n    {line}"))
    migrated.said("MG623", line, Kind.KEPT)


# -- left to the person ------------------------------------------------------------------------------------------------


def test_weights_loaded_behind_the_engine_are_left_to_the_person() -> None:
    line = 'model.module.load_state_dict(torch.load("pretrained.pt"), strict=False)'
    convert(resume=line).said("MG625", line, Kind.TODO)


def test_the_best_weights_loaded_for_the_final_evaluation_stay() -> None:
    line = 'model.module.load_state_dict(torch.load("best.pt"))'
    migrated = check_kept("end", f"{line}\nmodel.eval()\n")
    migrated.said("MG625", line, Kind.KEPT)


def test_a_helper_of_another_module_is_left_to_the_person() -> None:
    line = "save_model(args, epoch, model, optimizer)"
    convert(imports="from utils import save_model", loop=saving(line)).said("MG626", line, Kind.TODO)


def test_optimizer_state_read_elsewhere_is_named() -> None:
    line = 'print(optimizer.state_dict()["state"])'
    convert(end=line).said("MG627", line, Kind.TODO)


_AT_STAGE_ZERO = """
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        print(model.module.head.weight.grad.norm())
        optimizer.step()
    """


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('print(optimizer.state_dict()["state"])', "MG627"),
        ("weights, optim_sd = get_state_dict(model.module, optimizer)", "MG626"),
    ],
)
def test_optimizer_state_is_whole_at_stage_zero(line: str, code: str) -> None:
    imports = "from torch.distributed.checkpoint.state_dict import get_state_dict"
    convert(imports=imports, end=line).said(code, line, Kind.TODO)
    whole = convert(imports=imports, loop=_AT_STAGE_ZERO, end=line)
    assert whole.config["zero_optimization"] == {"stage": 0}
    whole.said(code, line, Kind.KEPT)
    whole.silent("MG609", "MG601", "MG603")


def test_optimizer_state_loaded_from_elsewhere_is_whole_at_stage_zero() -> None:
    line = "optimizer.load_state_dict(stored)"
    imports = "from storage import stored"
    convert(imports=imports, resume=line).said("MG626", line, Kind.TODO)
    convert(imports=imports, resume=line, loop=_AT_STAGE_ZERO).said("MG626", line, Kind.KEPT)


# -- stage 3 -----------------------------------------------------------------------------------------------------------


def test_an_export_at_stage_three_is_gathered_on_all_ranks() -> None:
    migrated = check_section(
        "end",
        'if rank == 0:\n    torch.save(model.module.state_dict(), "weights.pt")',
        """
        with deepspeed.zero.GatheredParameters(list(model.module.parameters())):
            if rank == 0:
                torch.save(model.module.state_dict(), "weights.pt")
        """,
        to={"zero_stage": 3},
    )
    migrated.said("MG628", "torch.save(", Kind.CONVERTED)


def test_weights_in_a_checkpoint_at_stage_three_are_the_engines() -> None:
    migrated = convert(loop=saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")'), to={"zero_stage": 3})
    assert "model.module.state_dict()" not in migrated.section("loop") or "GatheredParameters" in migrated.code


@pytest.mark.parametrize("read", ['checkpoint["model"]', 'checkpoint.get("model")'])
def test_weights_that_are_read_for_something_else_too_stay_in_the_checkpoint(read: str) -> None:
    migrated = convert(
        wrap="average = Net().cuda()\nmodel = DDP(Net().cuda())",
        resume=RESUME.rstrip("\n") + f"\n    average.load_state_dict({read})\n",
        loop=saving(f'torch.save({STATE}, "last.pt")'),
    )
    assert f"average.load_state_dict({read})" in migrated.section("resume")
    assert '"model": model.module.state_dict(), "optimizer": "saved by the engine"' in migrated.section("loop")


def test_an_entry_of_the_same_name_elsewhere_is_another_matter() -> None:
    migrated = convert(
        resume=RESUME,
        loop=saving(f'torch.save({STATE}, "last.pt")\nprint(vars(args)["model"])'),
    )
    assert HOLLOW in migrated.section("loop")


FROM_TWO_PLACES = """
if args.resume.startswith("https"):
    checkpoint = torch.hub.load_state_dict_from_url(args.resume)
else:
    checkpoint = torch.load(args.resume, map_location="cpu")
{weights}
optimizer.load_state_dict(checkpoint["optimizer"])
"""


@pytest.mark.parametrize(
    "weights",
    [
        'model.module.load_state_dict(checkpoint["model"])',
        'model.module.load_state_dict({k: v for k, v in checkpoint["model"].items() if "head" not in k}, strict=False)',
    ],
)
def test_a_checkpoint_that_also_comes_from_a_url_is_marked_there_once(weights: str) -> None:
    save = f'torch.save({STATE}, "last.pt")'
    migrated = convert(resume=FROM_TWO_PLACES.format(weights=weights), loop=saving(save))
    assert "no DeepSpeed checkpoint" in migrated.said("MG622", "load_state_dict_from_url", Kind.TODO).message
    assert migrated.code.count("what is loaded here is no DeepSpeed checkpoint") == 1
