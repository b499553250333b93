"""Scripts that SLURM or MPI number: what sets DeepSpeed's variables, and what starts the converted script."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

TORCHRUN = "torchrun --nproc_per_node 2 train.py"
ADDRESS = "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
SET = "torch.cuda.set_device(local_rank)\n"
OWN = 'dist.init_process_group("nccl", rank=rank, world_size=size)\n'
SLURM = """
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
local_rank = int(os.environ["SLURM_LOCALID"])
"""
MPI = """
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
local_rank = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
"""
SETS = """
os.environ["RANK"] = os.environ["SLURM_PROCID"]
rank = int(os.environ["RANK"])
local_rank = rank % 8
dist.init_process_group("nccl")
"""
LAUNCHER = """
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
local_rank = int(os.environ["LOCAL_RANK"])
"""


def block(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip().splitlines())


def group(text: str, **parts: str) -> Migrated:
    return convert(group=text, **parts)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (SLURM + OWN, f"{ADDRESS} srun --ntasks 2 python train.py"),
        (SLURM + 'os.environ["MASTER_ADDR"] = "node0"\n' + OWN, "srun --ntasks 2 python train.py"),
        (
            SLURM + 'dist.init_process_group("nccl", init_method="tcp://node0:29501", rank=rank, world_size=size)\n',
            "srun --ntasks 2 python train.py",
        ),
        (SLURM.replace("[", ".get(").replace("]", ", 0)") + OWN, f"{ADDRESS} srun --ntasks 2 python train.py"),
        (f'if "SLURM_PROCID" in os.environ:\n{block(SLURM)}else:\n    rank, size, local_rank = 0, 1, 0\n' + OWN,
         f"{ADDRESS} srun --ntasks 2 python train.py"),
        (SETS, f"{ADDRESS} srun --ntasks 2 python train.py"),
        (MPI + OWN, f"{ADDRESS} mpirun -np 2 python train.py"),
        (MPI.replace("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID").replace("OMPI_COMM_WORLD", "PMI") + OWN,
         f"{ADDRESS} mpiexec -n 2 python train.py"),
    ],
)  # fmt: skip
def test_a_script_that_needs_a_managers_variables_is_started_by_it(text: str, command: str) -> None:
    migrated = group(text + SET)
    assert migrated.result.launch == (command,)
    told = migrated.said("MG206", "model = DDP(", Kind.KEPT)
    assert told.message.startswith(command.removeprefix(f"{ADDRESS} ").split()[0])


EITHER = [
    f'if "RANK" in os.environ:\n{block(LAUNCHER)}elif "SLURM_PROCID" in os.environ:\n{block(SLURM)}' + OWN,
    f'if "RANK" not in os.environ:\n{block(SLURM)}else:\n{block(LAUNCHER)}' + OWN,
    f"try:\n{block(LAUNCHER)}except KeyError:\n{block(SLURM)}" + OWN,
    'local_rank = int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0)))\n'
    'rank = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"])\n'
    'size = int(os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"])\n' + OWN,
]  # fmt: skip


@pytest.mark.parametrize("text", EITHER)
def test_a_script_that_takes_a_launchers_variables_first_is_started_by_one(text: str) -> None:
    migrated = group(text + SET)
    assert migrated.result.launch[0] == TORCHRUN
    assert not any(change.code == "MG206" and change.kind is Kind.KEPT for change in migrated.changes)


def test_a_helper_for_each_of_them_is_asked_where_it_is_called() -> None:
    helpers = (
        f"def of_slurm():\n{block(SLURM)}    return rank, size, local_rank\n\n\n"
        f"def of_launcher():\n{block(LAUNCHER)}    return rank, size, local_rank\n"
    )
    call = 'rank, size, local_rank = of_launcher() if "RANK" in os.environ else of_slurm()\n'
    chosen = (
        'if "RANK" in os.environ:\n    rank, size, local_rank = of_launcher()\nelse:\n'
        "    rank, size, local_rank = of_slurm()\n"
    )
    assert group(chosen + OWN + SET, helpers=helpers).result.launch[0] == TORCHRUN
    assert group(call + OWN + SET, helpers=helpers).result.launch[0] == TORCHRUN
    assert "srun" in group("rank, size, local_rank = of_slurm()\n" + OWN + SET, helpers=helpers).result.launch[0]


def test_numbers_of_slurm_that_come_first_are_said_to_do_so() -> None:
    text = f'if "SLURM_PROCID" in os.environ:\n{block(SLURM)}else:\n{block(LAUNCHER)}' + OWN + SET
    migrated = group(text)
    assert migrated.result.launch[0] == TORCHRUN
    assert "within a job of SLURM start it with srun" in migrated.said("MG206", "model = DDP(", Kind.KEPT).message


_FIRST_OF = """
def rank_of_job():
    rank = 0
    for name in ({names}):
        if name in os.environ:
            rank = int(os.environ[name])
            {leave}
    return rank
"""


@pytest.mark.parametrize(
    ("names", "leave", "first"),
    [
        ('"RANK", "SLURM_PROCID"', "break", False),
        ('"SLURM_PROCID", "RANK"', "break", True),
        ('"RANK", "SLURM_PROCID"', "pass", True),
    ],
)
def test_the_order_of_a_loop_over_their_names_counts(names: str, leave: str, first: bool) -> None:
    text = (
        'local_rank = int(os.environ.get("LOCAL_RANK", 0))\nrank = 0\nif "SLURM_PROCID" in os.environ:\n'
        '    rank = rank_of_job()\ndist.init_process_group("nccl", rank=rank)\n'
    )
    migrated = group(text + SET, helpers=_FIRST_OF.format(names=names, leave=leave))
    assert migrated.result.launch[0] == TORCHRUN
    kept = [change for change in migrated.changes if change.code == "MG206" and change.kind is Kind.KEPT]
    assert [change.message.startswith("within a job of SLURM") for change in kept] == [True] * first


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("", '"SLURM_JOB_ID" in os.environ'),
        ("", 'os.getenv("SLURM_NNODES")'),
        ('args.in_job = "SLURM_JOB_ID" in os.environ\n', "args.in_job"),
        ('in_job = os.environ.get("SLURM_JOB_ID") is not None\n', "in_job and not args.amp"),
    ],
)
def test_any_variable_of_slurm_and_a_flag_for_it_let_its_numbers_come_first(before: str, test: str) -> None:
    text = f"{before}if {test}:\n{block(SLURM)}else:\n{block(LAUNCHER)}" + OWN + SET
    migrated = group(text)
    assert migrated.result.launch[0] == TORCHRUN
    assert "within a job of SLURM start it with srun" in migrated.said("MG206", "model = DDP(", Kind.KEPT).message


def test_a_script_that_needs_both_is_for_a_launcher_within_a_job() -> None:
    text = 'local_rank = int(os.environ["LOCAL_RANK"])\nrank = int(os.environ["SLURM_PROCID"]) * 8 + local_rank\n'
    migrated = group(text + SET + 'dist.init_process_group("nccl", rank=rank, world_size=16)\n')
    assert migrated.result.launch[0] == TORCHRUN
    told = migrated.said("MG206", "model = DDP(", Kind.KEPT)
    assert told.message.startswith("within a job of SLURM only")
    assert "on several nodes torchrun is started on each, with --nnodes and --rdzv_backend" in told.reason


def test_ranks_of_mpi_are_handed_to_deepspeed() -> None:
    code = group(MPI + OWN + SET).section("group")
    before, _, _ = code.partition("deepspeed.init_distributed(")
    assert 'os.environ.setdefault("RANK", str(rank))' in before
    assert 'os.environ.setdefault("LOCAL_RANK", str(local_rank))' in before


def test_what_the_script_does_not_hand_over_is_asked_for_only_where_it_is_there() -> None:
    text = (
        'if "SLURM_PROCID" in os.environ:\n    os.environ["RANK"] = os.environ["SLURM_PROCID"]\n'
        '    os.environ["WORLD_SIZE"] = os.environ["SLURM_NTASKS"]\n'
        '    os.environ["LOCAL_RANK"] = os.environ["SLURM_LOCALID"]\n'
        'dist.init_process_group("nccl")\nrank = dist.get_rank()\nlocal_rank = int(os.environ["LOCAL_RANK"])\n'
    )
    migrated = group(text + SET)
    assert 'os.environ.setdefault("RANK", os.environ.get("SLURM_PROCID", "0"))' in migrated.section("group")
    assert 'os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1"))' in migrated.section("group")
    assert migrated.result.launch[0] == TORCHRUN
    assert not any(change.code == "MG206" and change.kind is Kind.KEPT for change in migrated.changes)


def test_a_job_number_is_no_rank() -> None:
    migrated = group(LAUNCHER + 'print(os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_NTASKS"))\n' + OWN + SET)
    migrated.silent("MG206")
    assert migrated.result.launch[0] == TORCHRUN


def test_numbers_that_only_an_option_asks_for_do_not_come_first() -> None:
    text = f'if args.amp:\n{block(MPI)}elif "RANK" in os.environ:\n{block(LAUNCHER)}' + OWN + SET
    migrated = group(text)
    assert migrated.result.launch[0] == TORCHRUN
    assert not any(change.code == "MG206" and change.kind is Kind.KEPT for change in migrated.changes)
