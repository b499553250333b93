"""The process group, the launcher, environment variables and rank options."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, check_kept, check_refused, check_section, convert, script

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


def test_the_context_of_mp_spawn_is_refused() -> None:
    source = script(end="context = mp.spawn(main, nprocs=2, join=False)\ncontext.join()")
    check_refused(source, "MG913", "context = mp.spawn", "result of mp.spawn")


def test_barriers_and_destroy_stay() -> None:
    text = "dist.barrier()\nif dist.is_initialized():\n    dist.destroy_process_group()\n"
    check_kept("end", text)


def test_collectives_of_metrics_stay() -> None:
    check_kept("end", "total = torch.zeros(1).cuda()\ndist.all_reduce(total)\ntotal /= dist.get_world_size()\n")


def test_other_environment_variables_stay() -> None:
    check_kept("resume", 'os.environ["NCCL_DEBUG"] = "INFO"\nos.environ["TOKENIZERS_PARALLELISM"] = "false"\n')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('dist.init_process_group("nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ('dist.init_process_group(backend="nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ("dist.init_process_group()", "deepspeed.init_distributed()"),
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
    migrated.said("MG203", name, Kind.CONVERTED)


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


SPAWNED = """
def worker(gpu, world_size, epochs, args):
    dist.init_process_group("nccl", init_method="tcp://localhost:23456", rank=gpu, world_size=world_size)
    torch.cuda.set_device(gpu)
    loader = DataLoader(Digits("train"), batch_size=32)
    model = DDP(Net().cuda(gpu))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "mp.spawn(worker, args=(size, 10, args), nprocs=size, join=True)",
            'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)',
        ),
        (
            "mp.spawn(worker, nprocs=size, args=(size, 10, args))",
            'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)',
        ),
        (
            "mp.spawn(fn=worker, args=(size, 10, args), nprocs=size)",
            'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)',
        ),
        (
            "torch.multiprocessing.spawn(worker, (size, 10, args), size)",
            'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)',
        ),
        (
            "torch.multiprocessing.spawn(worker, (args.size, 10, args), args.size)",
            'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)',
        ),
    ],
)
def test_every_form_of_mp_spawn(before: str, after: str) -> None:
    migrated = convert(
        helpers=SPAWNED,
        options='parser.add_argument("--size", type=int, default=2)',
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end=f"size = torch.cuda.device_count()\n{before}",
    )
    assert after in migrated.section("end")
    assert "spawn" not in migrated.section("end")
    migrated.said("MG202", before, Kind.CONVERTED)
    assert (
        '    deepspeed.init_distributed(dist_backend="nccl")\n'
        "    gpu = deepspeed.comm.get_rank()\n    world_size = deepspeed.comm.get_world_size()\n"
    ) in migrated.section("helpers")


def test_a_spawned_worker_with_a_node_rank_gets_the_size_of_its_node() -> None:
    migrated = convert(
        helpers="""
            def worker(gpu, ngpus, args):
                args.rank = args.rank * ngpus + gpu
                dist.init_process_group("nccl", init_method=args.url, rank=args.rank, world_size=args.world_size)
                torch.cuda.set_device(gpu)
                model = DDP(Net().cuda(gpu))
                optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
                for x, y in DataLoader(Digits("train"), batch_size=32):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(x), y)
                    loss.backward()
                    optimizer.step()
            """,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end="""
            ngpus = torch.cuda.device_count()
            args.world_size = ngpus * args.world_size
            mp.spawn(worker, nprocs=ngpus, args=(ngpus, args))
            """,
    )
    assert 'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), args)' in migrated.section("end")
    assert "args.rank = deepspeed.comm.get_rank()" in migrated.section("helpers")


def test_a_spawn_under_a_flag_stays_under_it() -> None:
    migrated = convert(
        helpers=SPAWNED,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end="""
            size = torch.cuda.device_count()
            if args.distributed:
                mp.spawn(worker, args=(size, 10, args), nprocs=size)
            else:
                worker(0, 1, 10, args)
            """,
    )
    assert (
        'if args.distributed:\n    worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]), 10, args)\n'
        "else:\n    worker(0, 1, 10, args)\n"
    ) in migrated.section("end")


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
    assert 'setdefault("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0"))' in migrated.section("group")


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


def test_a_spawn_within_a_job_of_slurm_takes_the_numbers_of_the_launcher() -> None:
    """SLURM numbers the one task that runs torchrun: its size is no size of the processes."""
    address = 'init_method="file:///shared/" + os.environ["SLURM_JOBID"], rank=rank, world_size=world_size'
    helpers = SPAWNED.replace('init_method="tcp://localhost:23456", rank=gpu, world_size=world_size', address)
    node = '    rank = int(os.environ["SLURM_PROCID"]) * torch.cuda.device_count() + gpu\n'
    migrated = convert(
        helpers=helpers.replace("    dist.init", f"{node}    dist.init"),
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end='mp.spawn(worker, args=(int(os.environ["SLURM_NTASKS"]), 10, args), nprocs=torch.cuda.device_count())',
    )
    code = migrated.section("helpers")
    assert 'rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])' in code
    assert "rank = deepspeed.comm.get_rank()" in code
    said = migrated.said("MG201", "dist.init_process_group", Kind.CONVERTED).message
    assert "rank=rank, world_size=world_size come from the launcher" in said


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


def _spawning(before: str, helpers: str = "") -> Migrated:
    return convert(
        imports="import random\nimport numpy as np",
        helpers=SPAWNED + helpers,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end=f"{before}\nsize = torch.cuda.device_count()\nmp.spawn(worker, args=(size, 10, args), nprocs=size)",
    )


WORLD = 'int(os.environ["WORLD_SIZE"])'
STARTED = 'int(os.environ.get("WORLD_SIZE", {}))'


@pytest.mark.parametrize(
    ("before", "count", "spawn", "after"),
    [
        ("size = COUNT\nargs.lr *= size", "size", "(size, 64 // size, args)", "size = STARTED|WORLD, 64 // size, args"),
        ("size = COUNT", "size", "(size, 64 // size, args)", "size = STARTED|WORLD, 64 // size, args"),
        ("size = COUNT\ngiven = (size, 9, args)", "size", "given", "size = STARTED|*given"),
        ("args.lr *= COUNT", "COUNT", "(2, 64 // COUNT, args)", "args.lr *= STARTED|2, 64 // WORLD, args"),
    ],
)
def test_what_followed_from_the_number_of_devices_follows_the_launcher(
    before: str, count: str, spawn: str, after: str
) -> None:
    """On a machine with more GPUs than processes batches and rates would be worked out for too many processes."""
    text = f"{before}\nmp.spawn(worker, args={spawn}, nprocs={count})".replace("COUNT", "torch.cuda.device_count()")
    migrated = convert(
        helpers=SPAWNED,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end=text,
    )
    made, given = after.replace("STARTED", STARTED.format("torch.cuda.device_count()")).split("|")
    assert f"{made}\n" in migrated.section("end")
    assert f"""worker(int(os.environ["LOCAL_RANK"]), {given.replace("WORLD", WORLD)})""" in migrated.section("end")


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("args.batch = args.batch // gpus", True),
        ("args.lr *= gpus", True),
        ("args.batch = int(args.batch / gpus)", True),
        ("args.world_size = gpus * args.world_size", False),
        ("args.gpus = gpus", False),
    ],
)
def test_what_a_node_works_out_from_its_devices_needs_as_many_processes(line: str, marked: bool) -> None:
    worker = SPAWNED.replace("rank=gpu, world_size=world_size", "rank=args.rank, world_size=args.world_size").replace(
        "    dist.init", "    args.rank = args.rank * world_size + gpu\n    dist.init", 1
    )
    migrated = convert(
        helpers=worker,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end=f"gpus = torch.cuda.device_count()\n{line}\nmp.spawn(worker, args=(gpus, 10, args), nprocs=gpus)",
    )
    assert "LOCAL_WORLD_SIZE" in migrated.section("end")
    if marked:
        migrated.said("MG202", line, Kind.TODO)
    else:
        assert "start exactly" not in migrated.code


def test_the_number_of_devices_is_followed_through_a_function_that_spawns() -> None:
    helpers = (
        SPAWNED
        + """

def start(function, size, args):
    mp.spawn(function, args=(size, 10, args), nprocs=size)
"""
    )
    migrated = convert(
        helpers=helpers,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end="size = torch.cuda.device_count()\nargs.lr = args.lr * size\nstart(worker, size, args)",
    )
    started = STARTED.format("torch.cuda.device_count()")
    assert f"size = {started}\nargs.lr = args.lr * size\n" in migrated.section("end")


@pytest.mark.parametrize(
    "seed", ["torch.manual_seed(0)", "random.seed(args.epochs)", "np.random.seed(0)", "seed_all()"]
)
def test_a_seed_in_the_parent_reached_no_worker(seed: str) -> None:
    helpers = "\ndef seed_all():\n    random.seed(3)\n    torch.manual_seed(3)\n"
    said = _spawning(seed, helpers).said("MG207", seed, Kind.KEPT)
    assert seed.partition("(")[0] in said.message
    assert "seeded the parent only" in said.message
    assert "all ranks draw the same numbers" in said.message


def test_a_value_that_is_the_same_everywhere_is_no_work_of_the_parent() -> None:
    _spawning("order = torch.arange(9)\nprint(order)").silent("MG207")


def test_several_seeds_of_the_parent_are_told_together() -> None:
    migrated = _spawning("if args.lr:\n    random.seed(1)\n    torch.manual_seed(1)")
    assert migrated.said("MG207", "random.seed(1)").message.startswith(
        "random.seed, torch.manual_seed seeded the parent"
    )
    assert [change.code for change in migrated.changes].count("MG207") == 1


def test_a_setup_that_downloads_and_seeds_is_seen_for_its_seed() -> None:
    helpers = "\ndef prepare():\n    torch.manual_seed(3)\n"
    assert "seeded the parent" in _spawning("prepare()", helpers).said("MG207", "    prepare()").message


def test_a_generator_with_a_seed_of_its_own_is_no_seed_of_the_process() -> None:
    migrated = _spawning("order = torch.randperm(9, generator=torch.Generator().manual_seed(3))\nprint(order)")
    assert all("seeded the parent" not in change.message for change in migrated.changes)


@pytest.mark.parametrize(("line", "marked"), [("", 0), ("print(args.url)", 1)])
def test_an_address_that_only_the_process_group_read_needs_no_care(line: str, marked: int) -> None:
    address = 'args.url = f"tcp://localhost:{random.randrange(49152, 65535)}"\n'
    migrated = convert(
        imports="import random",
        helpers=SPAWNED.replace('"tcp://localhost:23456"', "args.url"),
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end=f"{address}{line}\nmp.spawn(worker, args=(2, 10, args), nprocs=torch.cuda.device_count())",
    )
    assert [change.code for change in migrated.changes].count("MG207") == marked


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


# -- a start without a launcher ----------------------------------------------------------------------------------------

MAY_BE_ALONE = """
distributed = "RANK" in os.environ
rank, local_rank = 0, 0
if distributed:
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
    ("start", "wrap"),
    [
        (group('dist.init_process_group("nccl")'), f"model = Net().cuda()\nif args.epochs:\n    {WRAP}\n"),
        (MAY_BE_ALONE, f"model = Net().cuda()\n{WRAP}\n"),
        (
            MAY_BE_ALONE,
            f"model = Net().cuda()\nif args.epochs:\n    {WRAP}\nelse:\n    model = DDP(model)\n",
        ),
    ],
)
def test_a_script_that_always_needed_a_launcher_is_told_nothing(start: str, wrap: str) -> None:
    convert(group=start, wrap=wrap).silent("MG216")
