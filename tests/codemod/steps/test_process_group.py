"""The process group, the launcher, environment variables and rank options."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_refused, check_section, convert, script

DEVICE = """
local_rank = int(os.environ["LOCAL_RANK"])
rank = dist.get_rank()
torch.cuda.set_device(local_rank)
"""


def group(line: str) -> str:
    return line + DEVICE


def test_a_store_of_its_own_is_refused() -> None:
    source = script(
        group=group('dist.init_process_group("nccl", store=dist.TCPStore("host", 1), rank=0, world_size=2)')
    )
    check_refused(source, "MG903", "store=", "store of its own")


def test_star_arguments_keep_the_call() -> None:
    migrated = convert(group=group("dist.init_process_group(**vars(args))"))
    migrated.said("MG201", "**vars(args)", Kind.KEPT)
    assert "dist.init_process_group(**vars(args))" in migrated.code


def test_barriers_and_destroy_stay() -> None:
    text = "dist.barrier()\nif dist.is_initialized():\n    dist.destroy_process_group()\n"
    check_kept("end", text)


def test_collectives_of_metrics_stay() -> None:
    check_kept("end", "total = torch.zeros(1).cuda()\ndist.all_reduce(total)\ntotal /= dist.get_world_size()\n")


@pytest.mark.parametrize(
    ("backend", "made", "speaks"),
    [
        ("", "torch.tensor(1.0)", True),
        ("backend=None", "torch.zeros(1)", True),
        ("", "torch.zeros(1).cuda()", False),
        ("", 'torch.zeros(1, device="cuda")', False),
        ("", "torch.zeros(1).to(local_rank)", False),
        ('"nccl"', "torch.tensor(1.0)", False),
    ],
)
def test_tensors_of_the_cpu_have_no_backend_that_torch_chose(backend: str, made: str, speaks: bool) -> None:
    line = "dist.all_reduce(total)"
    migrated = convert(group=f"dist.init_process_group({backend})\n", end=f"total = {made}\n{line}\n")
    assert any("cpu:gloo,cuda:nccl" in change.message for change in migrated.changes) is speaks


def test_other_environment_variables_stay() -> None:
    check_kept("resume", 'os.environ["NCCL_DEBUG"] = "INFO"\nos.environ["TOKENIZERS_PARALLELISM"] = "false"\n')


NOT_NCCLS = "timeout=torch.distributed.constants.default_pg_timeout"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('dist.init_process_group("nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ('dist.init_process_group(backend="nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ("dist.init_process_group()", f"deepspeed.init_distributed({NOT_NCCLS})"),
        ('dist.init_process_group("gloo")', f'deepspeed.init_distributed(dist_backend="gloo", {NOT_NCCLS})'),
        ('dist.init_process_group("NCCL", timeout=None)', 'deepspeed.init_distributed(dist_backend="NCCL")'),
        (
            'dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")',
            'deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo")',
        ),
        ('dist.init_process_group("nccl", "env://")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ('dist.init_process_group("nccl", init_method="env://")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        (
            'dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456")',
            'deepspeed.init_distributed(dist_backend="nccl")',
        ),
        (
            'dist.init_process_group("nccl", timeout=datetime.timedelta(hours=2))',
            'deepspeed.init_distributed(dist_backend="nccl", timeout=datetime.timedelta(hours=2))',
        ),
        (
            'dist.init_process_group("nccl", device_id=torch.device("cuda", 0))',
            'deepspeed.init_distributed(dist_backend="nccl")',
        ),
        (
            'dist.init_process_group("nccl", world_size=int(os.environ["WORLD_SIZE"]), rank=int(os.environ["RANK"]))',
            'deepspeed.init_distributed(dist_backend="nccl")',
        ),
        (
            'torch.distributed.init_process_group(backend="nccl")',
            'deepspeed.init_distributed(dist_backend="nccl")',
        ),
    ],
)
def test_every_form_of_init_process_group(before: str, after: str) -> None:
    migrated = check_section("group", group(before), group(after), imports="import datetime")
    migrated.said("MG201", before, Kind.CONVERTED)


def test_a_name_imported_by_itself_is_known() -> None:
    check_section(
        "group",
        group('init_process_group(backend="nccl")'),
        group('deepspeed.init_distributed(dist_backend="nccl")'),
        imports="from torch.distributed import init_process_group",
    )


def test_an_address_from_an_option_comes_from_the_launcher() -> None:
    migrated = check_section(
        "group",
        group('dist.init_process_group("nccl", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)'),
        group(
            'deepspeed.init_distributed(dist_backend="nccl")\n'
            "args.rank = deepspeed.comm.get_rank()\nargs.world_size = deepspeed.comm.get_world_size()"
        ),
        options='parser.add_argument("--dist-url", default="tcp://127.0.0.1:23456")\n'
        'parser.add_argument("--rank", type=int, default=0)\nparser.add_argument("--world-size", type=int, default=1)',
    )
    assert "init_method=args.dist_url" in migrated.said("MG201", "args.dist_url").message


def test_ranks_read_from_the_launcher_are_not_read_again() -> None:
    check_section(
        "group",
        """
        rank = int(os.environ["RANK"])
        world_size = int(os.environ["WORLD_SIZE"])
        local_rank = int(os.environ["LOCAL_RANK"])
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.cuda.set_device(local_rank)
        """,
        """
        rank = int(os.environ["RANK"])
        world_size = int(os.environ["WORLD_SIZE"])
        local_rank = int(os.environ["LOCAL_RANK"])
        deepspeed.init_distributed(dist_backend="nccl")
        torch.cuda.set_device(local_rank)
        """,
    )


def test_a_file_of_its_own_is_the_meeting_point_still() -> None:
    migrated = convert(group=group('dist.init_process_group("gloo", init_method="file:///tmp/rendezvous")'))
    assert 'init_method="file:///tmp/rendezvous"' in migrated.section("group")


def test_a_group_made_in_a_helper_is_converted_there() -> None:
    migrated = convert(
        helpers="""
            def setup(backend):
                if "RANK" in os.environ:
                    dist.init_process_group(backend, init_method="env://")
                    dist.barrier()
                return int(os.environ.get("LOCAL_RANK", 0))
            """,
        group='local_rank = setup("nccl")\nrank = dist.get_rank()\n',
    )
    assert "        deepspeed.init_distributed(dist_backend=backend)\n        dist.barrier()" in migrated.section(
        "helpers"
    )


def test_a_group_made_in_another_module_is_left_to_it() -> None:
    migrated = convert(imports="from launch import setup", group="local_rank = setup()\nrank = dist.get_rank()\n")
    assert "deepspeed.init_distributed" not in migrated.code
    migrated.said("MG205", "model = DDP(", Kind.KEPT)


@pytest.mark.parametrize("name", ["MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK"])
def test_a_variable_of_the_launcher_becomes_a_default(name: str) -> None:
    migrated = check_section(
        "resume", f'os.environ["{name}"] = str(args.epochs)', f'os.environ.setdefault("{name}", str(args.epochs))'
    )
    reason = migrated.said("MG203", name, Kind.CONVERTED).reason
    assert ("rendezvous" in reason) is name.startswith("MASTER_")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'parser.add_argument("--local_rank", type=int)',
            (
                'parser.add_argument("--local_rank", "--local-rank", type=int, '
                'default=int(os.environ.get("LOCAL_RANK", 0)))'
            ),
        ),
        pytest.param(
            'parser.add_argument("--local-rank", default=0, type=int, metavar="N")',
            'parser.add_argument("--local_rank", "--local-rank", default=int(os.environ.get("LOCAL_RANK", 0)), '
            'type=int, metavar="N")',
        ),
        (
            'parser.add_argument("--local_rank", type=int, default=-1)',
            (
                'parser.add_argument("--local_rank", "--local-rank", type=int, '
                'default=int(os.environ.get("LOCAL_RANK", -1)))'
            ),
        ),
        (
            'parser.add_argument("--local_rank", type=int, default=os.getenv("LOCAL_RANK", 0))',
            None,
        ),
    ],
)
def test_the_local_rank_option(before: str, after: str | None) -> None:
    migrated = convert(options=before, group='dist.init_process_group("nccl")\nlocal_rank = args.local_rank\nrank = 0')
    on_one_line = " ".join(migrated.code.split()).replace("( ", "(").replace(", )", ")")  # long calls are broken up
    assert (after or before) in on_one_line
    if after is not None:
        migrated.said("MG204", before, Kind.CONVERTED)


def test_there_is_a_command_for_each_launcher() -> None:
    assert convert().result.launch == (
        "torchrun --nproc_per_node 2 train.py",
        "deepspeed --num_gpus 2 --no_local_rank train.py",
    )


def test_a_switch_that_turns_distributed_training_on_is_part_of_the_command() -> None:
    migrated = convert(wrap="model = Net().cuda()\nif args.distributed:\n    model = DDP(model)")
    assert migrated.result.launch == (
        "torchrun --nproc_per_node 2 train.py --distributed",
        "deepspeed --num_gpus 2 --no_local_rank train.py --distributed",
    )


def test_ranks_of_slurm_are_handed_to_deepspeed() -> None:
    migrated = convert(
        group="""
            rank = int(os.environ["SLURM_PROCID"])
            local_rank = int(os.environ["SLURM_LOCALID"])
            dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
            torch.cuda.set_device(local_rank)
            """
    )
    code = migrated.section("group")
    before, _, _ = code.partition("deepspeed.init_distributed(")
    assert 'os.environ.setdefault("RANK", str(rank))' in before
    assert 'os.environ.setdefault("WORLD_SIZE", str(int(os.environ["SLURM_NTASKS"])))' in before
    assert 'os.environ.setdefault("LOCAL_RANK"' in before
    migrated.said("MG206", "dist.init_process_group", Kind.CONVERTED)


def test_the_device_of_a_slurm_task_is_the_one_that_the_script_chose() -> None:
    migrated = convert(
        group="""
            rank = int(os.environ["SLURM_PROCID"])
            local_rank = rank % torch.cuda.device_count()
            torch.cuda.set_device(local_rank)
            dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
            """
    )
    assert 'os.environ.setdefault("LOCAL_RANK", str(local_rank))' in migrated.section("group")


def test_a_device_that_gets_its_index_later_is_not_the_local_rank() -> None:
    migrated = convert(
        group="""
            device = "cuda"
            rank = int(os.environ["SLURM_PROCID"])
            dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
            device = f"cuda:{rank % torch.cuda.device_count()}"
            torch.cuda.set_device(device)
            """
    )
    one_is_visible = '"0" if torch.cuda.device_count() == 1'
    assert f'setdefault("LOCAL_RANK", {one_is_visible} else os.environ.get("SLURM_LOCALID", "0"))' in migrated.section(
        "group"
    )


def test_an_address_under_slurm_is_still_used() -> None:
    migrated = convert(
        group="""
            rank = int(os.environ["SLURM_PROCID"])
            local_rank = int(os.environ["SLURM_LOCALID"])
            host = os.environ["SLURM_LAUNCH_NODE_IPADDR"]
            dist.init_process_group("nccl", init_method=f"tcp://{host}:29500", rank=rank,
                                    world_size=int(os.environ["SLURM_NTASKS"]))
            """
    )
    assert 'f"tcp://{host}:29500"' in migrated.section("group") or "MASTER_ADDR" in migrated.section("group")


def test_what_a_task_of_slurm_hands_over_is_not_said_to_come_from_the_launcher() -> None:
    text = """
        rank = int(os.environ["SLURM_PROCID"])
        local_rank = int(os.environ["SLURM_LOCALID"])
        dist.init_process_group("nccl", init_method=args.data, rank=rank, world_size=4)
        torch.cuda.set_device(local_rank)
        """
    migrated = convert(group=text)
    assert "rank=rank, world_size=4" in migrated.section("group")
    assert "come" not in migrated.said("MG201", "dist.init_process_group", Kind.CONVERTED).message


# -- the device of the engine ------------------------------------------------------------------------------------------


ON_CPU = {
    "group": 'dist.init_process_group("gloo")\nrank = dist.get_rank()\n',
    "wrap": "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:512'\nmodel = Net()\nmodel = DDP(model)\n",
    "loop": "for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n    optimizer.zero_grad()\n"
    "    loss.backward()\n    optimizer.step()\n",
}


def test_a_script_for_the_cpu_alone_is_told_how_to_stay_there() -> None:
    assert "DS_ACCELERATOR=cpu" in convert(**ON_CPU).said("MG213", "model = DDP(", Kind.KEPT).message


def test_a_script_that_knows_of_gpus_has_nothing_to_say_about_it() -> None:
    convert(**{**ON_CPU, "wrap": "model = Net().cuda()\nmodel = DDP(model)\n"}).silent("MG213")
    convert(**{**ON_CPU, "group": ON_CPU["group"].replace("gloo", "nccl")}).silent("MG213")
