"""``mp.spawn`` and what its workers are given."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, convert, script
from tests.codemod.steps.spawn_scripts import NOTHING_ELSE, SPAWNED


def test_the_context_of_mp_spawn_is_refused() -> None:
    source = script(end="context = mp.spawn(main, nprocs=2, join=False)\ncontext.join()")
    check_refused(source, "MG913", "context = mp.spawn", "result of mp.spawn")


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
        **NOTHING_ELSE,
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
        **NOTHING_ELSE,
        end="""
            ngpus = torch.cuda.device_count()
            args.world_size = ngpus * args.world_size
            mp.spawn(worker, nprocs=ngpus, args=(ngpus, args))
            """,
    )
    assert 'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), args)' in migrated.section("end")
    assert "with --nnodes and --rdzv_backend c10d" in migrated.said("MG202", "mp.spawn(", Kind.CONVERTED).reason
    assert "args.rank = deepspeed.comm.get_rank()" in migrated.section("helpers")


def test_a_spawn_under_a_flag_stays_under_it() -> None:
    migrated = convert(
        helpers=SPAWNED,
        **NOTHING_ELSE,
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


def test_a_spawn_within_a_job_of_slurm_takes_the_numbers_of_the_launcher() -> None:
    """SLURM numbers the one task that runs torchrun: its size is no size of the processes."""
    address = 'init_method="file:///shared/" + os.environ["SLURM_JOBID"], rank=rank, world_size=world_size'
    helpers = SPAWNED.replace('init_method="tcp://localhost:23456", rank=gpu, world_size=world_size', address)
    node = '    rank = int(os.environ["SLURM_PROCID"]) * torch.cuda.device_count() + gpu\n'
    migrated = convert(
        helpers=helpers.replace("    dist.init", f"{node}    dist.init"),
        **NOTHING_ELSE,
        end='mp.spawn(worker, args=(int(os.environ["SLURM_NTASKS"]), 10, args), nprocs=torch.cuda.device_count())',
    )
    code = migrated.section("helpers")
    assert 'rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])' in code
    assert "rank = deepspeed.comm.get_rank()" in code
    said = migrated.said("MG201", "dist.init_process_group", Kind.CONVERTED).message
    assert "rank=rank, world_size=world_size come from the launcher" in said
