"""Scripts that also trained in one process, without a launcher: that start is gone, which is said."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

MAY_BE_ALONE = """
distributed = "RANK" in os.environ
rank, local_rank = 0, 0
if distributed:
    dist.init_process_group("nccl")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
"""
NEVER_ALONE = """
dist.init_process_group("nccl")
rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
"""
WRAP = "model = DDP(model, device_ids=[local_rank])"


def test_that_python_alone_cannot_start_the_script_any_more_is_said() -> None:
    migrated = convert(group=MAY_BE_ALONE, wrap=f"model = Net().cuda()\nif distributed:\n    {WRAP}\n")
    assert "cannot start the script" in migrated.said("MG216", "DDP(model", Kind.KEPT).message


def test_a_function_that_is_left_where_there_is_no_launcher_is_such_a_start_too() -> None:
    helper = """
        def set_up():
            if "RANK" not in os.environ:
                return False
            dist.init_process_group("nccl")
            return True
        """
    migrated = convert(
        helpers=helper,
        group="distributed = set_up()\nlocal_rank = int(os.environ.get('LOCAL_RANK', 0))\nrank = local_rank\n",
        wrap=f"model = Net().cuda()\nif distributed:\n    {WRAP}\n",
    )
    migrated.said("MG216", "DDP(model", Kind.KEPT)


@pytest.mark.parametrize(
    "wrap",
    [
        "model = Net().cuda()\nif distributed:\n    model = wrapped(model)\n",
        "model = Net().cuda()\nmodel = maybe(model, distributed)\n",
        "model = Net().cuda()\nmodel = DDP(model) if distributed else model\n",
    ],
)
def test_a_wrap_whose_call_is_passed_over_is_such_a_start_too(wrap: str) -> None:
    helpers = """
        def wrapped(net):
            return DDP(net)

        def maybe(net, distributed):
            if not distributed:
                return net
            return DDP(net)
        """
    wanted = helpers.split("        def maybe")
    helpers = wanted[0] if "wrapped" in wrap else f"        def maybe{wanted[1]}" if "maybe" in wrap else ""
    convert(group=MAY_BE_ALONE, helpers=helpers, wrap=wrap).said("MG216", "DDP(", Kind.KEPT)


@pytest.mark.parametrize(
    ("start", "wrap"),
    [
        (NEVER_ALONE, f"model = Net().cuda()\nif args.epochs:\n    {WRAP}\n"),
        (MAY_BE_ALONE, f"model = Net().cuda()\n{WRAP}\n"),
        (
            MAY_BE_ALONE,
            f"model = Net().cuda()\nif args.epochs:\n    {WRAP}\nelse:\n    model = DDP(model)\n",
        ),
    ],
)
def test_a_script_that_always_needed_a_launcher_is_told_nothing(start: str, wrap: str) -> None:
    convert(group=start, wrap=wrap).silent("MG216")


@pytest.mark.parametrize(
    "text",
    [
        'if args.amp:\n    assert args.local_rank == -1, "not under a launcher"\n',
        'if args.local_rank != -1:\n    raise SystemExit("not under a launcher")\n',
    ],
)
def test_a_part_that_refuses_a_launcher_is_spoken_of(text: str) -> None:
    migrated = convert(options='parser.add_argument("--local_rank", type=int, default=-1)', resume=text)
    assert "refuses a run under a launcher" in migrated.said("MG216", "local_rank", Kind.KEPT).message


def test_an_assertion_about_another_rank_is_not() -> None:
    convert(resume="assert rank != -1\nif rank == -1:\n    raise SystemExit\n").silent("MG216")


def test_what_one_process_under_a_launcher_passes_over_is_named() -> None:
    group = MAY_BE_ALONE.replace("rank, local_rank = 0, 0", "rank, local_rank = 0, -1")
    wrap = f"model = Net().cuda()\nif local_rank != -1:\n    {WRAP}\n"
    end = "if local_rank in (-1, 0):\n    print(rank)\nif local_rank == -1:\n    evaluate(model)\n"
    migrated = convert(group=group, wrap=wrap, end=end)
    line = migrated.before.splitlines().index("    if local_rank == -1:") + 1
    told = migrated.said("MG216", "DDP(model", Kind.KEPT)
    assert "whose local rank is 0 and not -1: " in told.reason
    assert f"line {line} go the way of several processes" in told.reason
    assert str(line - 2) not in told.reason


GLOO, NCCL = 'dist.init_process_group("gloo")', 'dist.init_process_group("nccl")'
NONE = "rank, local_rank = 0, 0\n"


@pytest.mark.parametrize(
    "group",
    [
        f"if not args.amp:\n    if args.distributed:\n        {GLOO}\nelse:\n    {NCCL}\n",
        f"if args.distributed:\n    if args.amp:\n        {GLOO}\n    else:\n        {NCCL}\n",
    ],
)
def test_two_set_ups_of_which_a_start_may_pass_both_are_such_a_start_too(group: str) -> None:
    wraps = f"if args.distributed:\n    if args.amp:\n        {WRAP}\n    else:\n        model = DDP(model)\n"
    convert(group=NONE + group, wrap=f"model = Net().cuda()\n{wraps}").said("MG216", WRAP, Kind.KEPT)


def test_one_of_two_set_ups_that_always_runs_is_none() -> None:
    group = f"{NONE}if args.amp:\n    {GLOO}\nelse:\n    {NCCL}\n"
    convert(group=group, wrap=f"model = Net().cuda()\nif args.distributed:\n    {WRAP}\n").silent("MG216")
