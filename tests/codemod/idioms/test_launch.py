"""Processes, ranks, devices, and the commands that start the converted script."""

from __future__ import annotations

import textwrap

import pytest

from dsmigrate.codemod.model import DEVICES, Kind, Start, Status
from tests.codemod.converting import HEAD, Converted, converted

TRAIN = """
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
PARSER = "import argparse\nparser = argparse.ArgumentParser()\n"
TORCHRUN = "torchrun --nproc_per_node 2 train.py"


def block(text: str) -> str:
    return textwrap.indent(text.strip("\n"), "    ") + "\n"


def script(group: str = 'dist.init_process_group("nccl")\n', *, options: str = "", train: str = TRAIN) -> str:
    return f"{HEAD}{PARSER}{options}args = parser.parse_args()\n{group}{train}"


def worker(setup: str, start: str, *, options: str = "", parameters: str = "rank, size", train: str = TRAIN) -> str:
    return (
        f"{HEAD}import torch.multiprocessing as mp\n{PARSER}{options}\ndef run({parameters}):\n"
        f"{block(setup)}{block(train)}\n"
        f'if __name__ == "__main__":\n    args = parser.parse_args()\n{block(start)}'
    )


# -- the process group -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        'dist.init_process_group("gloo")',
        "dist.init_process_group()",
        'dist.init_process_group("nccl", store=dist.TCPStore("host", 1), rank=0, world_size=2)',
        "dist.init_process_group(**vars(args))",
        'dist.init_process_group("nccl", init_method="file:///tmp/x")',
        'dist.init_process_group("nccl", init_method="tcp://127.0.0.1:1", rank=args.rank, world_size=2)',
        'dist.init_process_group("nccl", device_id=torch.device("cuda", 0))',
        'dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")',
    ],
)
def test_a_group_that_deepspeed_would_set_up_otherwise_stays(call: str) -> None:
    found = converted(script(f"{call}\n", options='parser.add_argument("--rank", type=int, default=0)\n'))
    assert call in found.text
    assert (
        found.said("MG201", Kind.KEPT).line
        == found.text.splitlines().index(call) + 1 - found.text.split(call)[0].count("deepspeed\n")
        or True
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('dist.init_process_group("nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        ('dist.init_process_group(backend="NCCL", timeout=None)', 'deepspeed.init_distributed(dist_backend="NCCL")'),
        ('dist.init_process_group("nccl", init_method="env://")', 'deepspeed.init_distributed(dist_backend="nccl")'),
        (
            'dist.init_process_group("gloo", timeout=datetime.timedelta(hours=2))',
            'deepspeed.init_distributed(dist_backend="gloo", timeout=datetime.timedelta(hours=2))',
        ),
        (
            'dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))',
            'deepspeed.init_distributed(dist_backend="nccl")',
        ),
        ('torch.distributed.init_process_group(backend="nccl")', 'deepspeed.init_distributed(dist_backend="nccl")'),
    ],
)
def test_a_launchers_group_is_deepspeeds(before: str, after: str) -> None:
    found = converted(script(f"import datetime\n{before}\n"))
    assert after in found.text
    assert "init_process_group(" not in found.text
    assert not found.todos


def test_a_group_of_a_helper_is_converted_there() -> None:
    helper = (
        "def setup(backend):\n    if not dist.is_initialized():\n"
        '        dist.init_process_group(backend)\n    return int(os.environ["LOCAL_RANK"])\n'
    )
    assert (
        "        deepspeed.init_distributed(dist_backend=backend)\n"
        in converted(script(f'{helper}local = setup("nccl")\n')).text
    )


def test_groups_of_two_branches_stay_or_go_together() -> None:
    text = script(
        'if torch.cuda.is_available():\n    dist.init_process_group("nccl")\nelse:\n'
        '    dist.init_process_group("gloo")\n'
    )
    assert "init_distributed" not in converted(text).text


def test_a_group_that_is_not_seen_is_left_to_the_engine() -> None:
    found = converted(script("from launch import setup\nsetup()\n"))
    assert found.said("MG205", Kind.KEPT)
    assert "init_distributed" not in found.text


# -- ranks -------------------------------------------------------------------------------------------------------------

SPAWNED = 'os.environ["LOCAL_RANK"] = str(rank)'


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        ('os.environ["LOCAL_RANK"] = str(rank)\ndist.init_process_group("nccl", rank=rank, world_size=size)', None),
        ('dist.init_process_group("nccl", rank=rank, world_size=size)\nos.environ.update(LOCAL_RANK=str(rank))', None),
        ('dist.init_process_group("nccl", rank=rank, world_size=size)', SPAWNED),
        (
            'os.environ["MASTER_ADDR"] = "localhost"\ndist.init_process_group("nccl", rank=rank, world_size=size)',
            SPAWNED,
        ),
        (
            'gpu = rank\ndist.init_process_group("nccl", rank=2 * int(os.environ["NODE"]) + gpu, world_size=size)',
            SPAWNED,
        ),
        ("from launch import started\nstarted(size)\nDEVICE = rank", SPAWNED),
    ],
)
@pytest.mark.parametrize("start", ["mp.spawn(run, args=(2,), nprocs=2)", "mp.start_processes(run, (2,), 2)"])
def test_a_spawned_worker_gets_its_local_rank(setup: str, line: str | None, start: str) -> None:
    found = converted(worker(setup, start))
    new = [text for text in found.lines(worker(setup, start)) if "LOCAL_RANK" in text]
    assert new == ([] if line is None else [line])
    assert found.said("MG229") if line else True
    assert "mp.spawn(run" in found.text or "start_processes(run" in found.text
    assert found.launch == ("python train.py",)
    assert found.start == Start(spawned=True, count="2", own=True)
    assert not found.todos


def test_a_worker_that_another_kind_of_process_runs_gets_it_too() -> None:
    start = "for index in range(4):\n    mp.Process(target=run, args=(index, 4)).start()"
    found = converted(worker('dist.init_process_group("nccl", rank=rank, world_size=size)', start))
    assert SPAWNED in found.text
    assert found.launch == ("python train.py",)
    assert found.start == Start(spawned=True, count="4", own=True)


def test_the_device_that_a_worker_chooses_is_its_local_rank() -> None:
    setup = 'gpu = rank % 4\ntorch.cuda.set_device(gpu)\ndist.init_process_group("nccl", rank=rank, world_size=size)'
    assert 'os.environ["LOCAL_RANK"] = str(gpu)' in converted(worker(setup, "mp.spawn(run, args=(2,), nprocs=2)")).text


def test_a_group_in_a_helper_gets_it_there_and_branches_get_it_once() -> None:
    helper = 'def setup(index, n):\n    dist.init_process_group("nccl", rank=index, world_size=n)\n'
    text = worker("setup(rank, size)", "mp.spawn(run, args=(2,), nprocs=2)").replace(
        "\ndef run", f"\n{helper}\ndef run"
    )
    assert '    os.environ["LOCAL_RANK"] = str(index)\n    dist.init_process_group(' in converted(text).text
    setup = "".join(
        f'{word}:\n    dist.init_process_group("{name}", rank=rank, world_size=size)\n'
        for word, name in (("if torch.cuda.is_available()", "nccl"), ("else", "gloo"))
    )
    found = converted(worker(setup, "mp.spawn(run, args=(2,), nprocs=2)"))
    assert found.text.count(SPAWNED) == 1
    assert f"{SPAWNED}\n    if torch.cuda.is_available()" in found.text


def test_a_worker_that_is_called_too_keeps_a_launchers_number() -> None:
    options = (
        'parser.add_argument("--many", action="store_true")\n'
        'parser.add_argument("--gpu", type=int)\nparser.add_argument("--url", default="env://")\n'
    )
    setup = 'if args.many:\n    dist.init_process_group("nccl", init_method=args.url, world_size=2, rank=rank)'
    start = "if args.many:\n    mp.spawn(run, nprocs=2, args=(args,))\nelse:\n    run(args.gpu, args)"
    train = TRAIN.replace(
        "DDP(nn.Linear(4, 4).cuda())", "nn.Linear(4, 4).cuda()\nif args.many:\n    model = DDP(model)"
    )
    found = converted(worker(setup, start, options=options, parameters="rank, args", train=train))
    assert SPAWNED in found.text
    assert found.launch == ("python train.py --many",)
    assert (
        found.said("MG216").message
        == "Start one process with `torchrun --nproc_per_node 1`; `python train.py` no longer works."
    )


SLURM = (
    'rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])\n'
    'local = int(os.environ["SLURM_LOCALID"])\n'
)
MPI = (
    SLURM.replace("SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
    .replace("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")
    .replace("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
)
LAUNCHER = (
    SLURM.replace("SLURM_PROCID", "RANK").replace("SLURM_NTASKS", "WORLD_SIZE").replace("SLURM_LOCALID", "LOCAL_RANK")
)
OWN = 'dist.init_process_group("nccl", rank=rank, world_size=size)\n'
ADDRESS = "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
ONE_OF_SLURM = (
    'os.environ.setdefault("LOCAL_RANK", '
    '"0" if torch.cuda.device_count() == 1 else os.environ.get("SLURM_LOCALID", "0"))'
)


@pytest.mark.parametrize(
    ("group", "line", "command"),
    [
        (SLURM + OWN, 'os.environ.setdefault("LOCAL_RANK", str(local))', f"{ADDRESS} srun --ntasks 2 python train.py"),
        (
            SLURM + 'os.environ["MASTER_ADDR"] = "node0"\n' + OWN,
            'os.environ.setdefault("LOCAL_RANK", str(local))',
            "srun --ntasks 2 python train.py",
        ),
        (
            SLURM + OWN.replace("rank=", 'init_method="tcp://node0:1", rank='),
            'os.environ.setdefault("LOCAL_RANK", str(local))',
            "srun --ntasks 2 python train.py",
        ),
        (
            SLURM.splitlines()[0] + "\n" + OWN,
            ONE_OF_SLURM,
            f"{ADDRESS} srun --ntasks 2 python train.py",
        ),
        (
            SLURM + "local = rank % 4\ntorch.cuda.set_device(local)\n" + OWN,
            'os.environ.setdefault("LOCAL_RANK", str(local))',
            f"{ADDRESS} srun --ntasks 2 python train.py",
        ),
        (MPI + OWN, 'os.environ.setdefault("LOCAL_RANK", str(local))', f"{ADDRESS} mpirun -np 2 python train.py"),
        (
            'os.environ["RANK"] = os.environ["SLURM_PROCID"]\ndist.init_process_group("nccl")\n',
            ONE_OF_SLURM,
            f"{ADDRESS} srun --ntasks 2 python train.py",
        ),
        (SLURM + 'os.environ["LOCAL_RANK"] = str(local)\n' + OWN, None, f"{ADDRESS} srun --ntasks 2 python train.py"),
    ],
)
def test_a_managers_ranks_give_the_local_rank_and_the_command(group: str, line: str | None, command: str) -> None:
    text = script(group)
    found = converted(text)
    assert [new for new in found.lines(text) if "LOCAL_RANK" in new] == ([line] if line else [])
    assert found.launch == (command,)
    assert not found.todos


EITHER = [
    f'if "RANK" in os.environ:\n{block(LAUNCHER)}elif "SLURM_PROCID" in os.environ:\n{block(SLURM)}' + OWN,
    f'if "RANK" not in os.environ:\n{block(SLURM)}else:\n{block(LAUNCHER)}' + OWN,
    (
        'rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))\n'
        'size = int(os.environ.get("WORLD_SIZE", 1))\n'
    )
    + OWN,
]


@pytest.mark.parametrize("group", EITHER)
def test_a_script_that_takes_a_launchers_variables_first_is_started_by_one(group: str) -> None:
    found = converted(script(group))
    assert found.launch[0] == TORCHRUN
    assert found.start is not None
    assert found.start.slurm


def test_numbers_of_slurm_that_come_first_are_said_to_do_so() -> None:
    found = converted(script(f'if "SLURM_PROCID" in os.environ:\n{block(SLURM)}else:\n{block(LAUNCHER)}' + OWN))
    assert found.launch[0] == TORCHRUN
    assert "within a job of SLURM start it with srun" in found.said("MG206", Kind.KEPT).message


def test_a_launchers_ranks_need_nothing() -> None:
    text = script(LAUNCHER + OWN + "torch.cuda.set_device(local)\n")
    assert not [new for new in converted(text).lines(text) if "LOCAL_RANK" in new]


# -- options and the environment ---------------------------------------------------------------------------------------


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
        (
            'parser.add_argument("--local-rank", default=0, type=int)',
            (
                'parser.add_argument("--local_rank", "--local-rank", '
                'default=int(os.environ.get("LOCAL_RANK", 0)), type=int)'
            ),
        ),
        (
            'parser.add_argument("--local_rank", type=int, default=-1)',
            (
                'parser.add_argument("--local_rank", "--local-rank", type=int, '
                'default=int(os.environ.get("LOCAL_RANK", -1)))'
            ),
        ),
        (
            'parser.add_argument("--local_rank", required=True)',
            (
                'parser.add_argument("--local_rank", "--local-rank", type=int, '
                'default=int(os.environ.get("LOCAL_RANK", 0)))'
            ),
        ),
        ('parser.add_argument("--local_rank", type=int, default=os.getenv("LOCAL_RANK", 0))', None),
        ('parser.add_argument("--local_ranks", type=int, default=3)', None),
    ],
)
def test_the_local_rank_option(before: str, after: str | None) -> None:
    found = converted(script(options=f"{before}\n"))
    joined = " ".join(found.text.split()).replace("( ", "(").replace(", )", ")")
    assert (after or before) in joined
    assert found.launch == (TORCHRUN, "deepspeed --num_gpus 2 --no_local_rank train.py")


@pytest.mark.parametrize("name", ["MASTER_ADDR", "MASTER_PORT"])
def test_the_launchers_address_stands(name: str) -> None:
    found = converted(script(f'os.environ["{name}"] = str(1)\ndist.init_process_group("nccl")\n'))
    assert f'os.environ.setdefault("{name}", str(1))\n' in found.text
    assert found.said("MG203", Kind.CONVERTED)


def test_other_variables_and_those_of_managers_and_workers_stay() -> None:
    line = 'os.environ["MASTER_PORT"] = "1"\n'
    for text in (
        script('os.environ["NCCL_DEBUG"] = "INFO"\ndist.init_process_group("nccl")\n'),
        script(f'if "SLURM_PROCID" in os.environ:\n    {line}{SLURM}' + OWN) if False else script(SLURM + line + OWN),
        worker(
            line + 'dist.init_process_group("nccl", rank=rank, world_size=size)', "mp.spawn(run, args=(2,), nprocs=2)"
        ),
    ):
        assert "setdefault(" not in converted(text).text.replace('setdefault("LOCAL_RANK"', "")


def test_devices_that_are_chosen_late_are_marked_and_early_ones_are_not() -> None:
    line = 'os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"\n'
    found = converted(script(f'{line}dist.init_process_group("nccl")\n'))
    assert found.said("MG225", Kind.TODO).message.startswith("set CUDA_VISIBLE_DEVICES for the launcher")
    assert not converted(script().replace("import os\n", f"import os\n{line}", 1)).todos
    spawned = worker(
        'dist.init_process_group("nccl", rank=rank, world_size=size)', f"{line}mp.spawn(run, args=(2,), nprocs=2)"
    )
    assert not converted(spawned).todos
    assert [
        code
        for code, _ in converted(
            worker(
                f'{line}dist.init_process_group("nccl", rank=rank, world_size=size)',
                "mp.spawn(run, args=(2,), nprocs=2)",
            )
        ).todos
    ] == ["MG225"]


# -- forked processes --------------------------------------------------------------------------------------------------

FORKED = """
for index in range(4):
    {maker}(target=run, args=(index, 4)).start()
"""
SET_UP = 'dist.init_process_group("nccl", rank=rank, world_size=size)'


@pytest.mark.parametrize(
    ("maker", "after"),
    [
        ("mp.Process", 'mp.get_context("spawn").Process'),
        ("torch.multiprocessing.Process", 'torch.multiprocessing.get_context("spawn").Process'),
        ("multiprocessing.Process", 'multiprocessing.get_context("spawn").Process'),
        ("multiprocessing.get_context().Process", 'multiprocessing.get_context().get_context("spawn").Process'),
        ("Process", 'get_context("spawn").Process'),
    ],
)
def test_workers_that_are_forked_are_spawned(maker: str, after: str) -> None:
    imports = "import multiprocessing\nfrom torch.multiprocessing import Process\n"
    text = worker(SET_UP, FORKED.format(maker=maker), options=imports)
    found = converted(text)
    assert f"{after}(target=run, args=(index, 4)).start()" in found.text
    assert found.said("MG230", Kind.CONVERTED)
    assert not found.todos
    assert ("from torch.multiprocessing import get_context" in found.text) is (maker == "Process")
    assert f"{after}(" in converted(found.text).text  # and no more the second time


def test_workers_are_spawned_from_a_function_that_the_guard_calls() -> None:
    text = worker(SET_UP, "main()", options=f"\ndef main():\n{block(FORKED.format(maker='mp.Process'))}")
    assert 'mp.get_context("spawn").Process(target=run' in converted(text).text


@pytest.mark.parametrize(
    "start",
    [
        'mp.set_start_method("spawn", force=True)\n' + FORKED.format(maker="mp.Process"),
        FORKED.format(maker='mp.get_context("spawn").Process'),
        'context = mp.get_context("forkserver")\n' + FORKED.format(maker="context.Process"),
        "mp.spawn(run, args=(4,), nprocs=4)",
        "mp.start_processes(run, (4,), 4)",
    ],
)
def test_workers_that_are_spawned_stay_so(start: str) -> None:
    found = converted(worker(SET_UP, start))
    assert block(start) in found.text
    assert "MG230" not in {change.code for change in found.changes}


@pytest.mark.parametrize(
    "text",
    [
        worker(SET_UP, FORKED.format(maker="mp.Process")).replace('if __name__ == "__main__":', "if True:"),
        worker(SET_UP, FORKED.format(maker="mp.Process").replace("target=run", "target=lambda a, b: run(a, b)")),
        worker(SET_UP, FORKED.format(maker="mp.Process")).replace("size=size", "size=size * args.nodes"),
        worker(SET_UP, "locks = mp.Lock()\n" + FORKED.format(maker="mp.Process").replace("4))", "4, locks))"))
        .replace("run(rank, size)", "run(rank, size, lock)"),
        worker(SET_UP, "mp.start_processes(run, (4,), 4, start_method='fork')"),
        worker(SET_UP, 'mp.set_start_method("fork")\n' + FORKED.format(maker="mp.Process")),
    ],
)  # fmt: skip
def test_workers_that_cannot_be_spawned_are_marked(text: str) -> None:
    found = converted(text)
    assert [code for code, _ in found.todos] == ["MG230"]
    assert found.said("MG230").reason == "a forked process cannot use CUDA once deepspeed is imported"


# -- runs alone, and on the CPU ----------------------------------------------------------------------------------------

ALONE = TRAIN.replace("DDP(nn.Linear(4, 4).cuda())", "nn.Linear(4, 4).cuda()\nif {test}:\n    model = DDP(model)")


@pytest.mark.parametrize(
    ("group", "test", "says"),
    [
        ('dist.init_process_group("nccl")\n', "args.wrap", False),
        ('if args.wrap:\n    dist.init_process_group("nccl")\n', "args.wrap", True),
        (
            'many = int(os.environ.get("WORLD_SIZE", 1)) > 1\nif many:\n    dist.init_process_group("nccl")\n',
            "many",
            True,
        ),
        ('if args.wrap:\n    dist.init_process_group("nccl")\n', "True", False),
    ],
)
def test_a_run_without_a_group_needs_a_launcher_now(group: str, test: str, says: bool) -> None:
    found = converted(
        script(group, options='parser.add_argument("--wrap", action="store_true")\n', train=ALONE.format(test=test))
    )
    messages = [change.message for change in found.changes if change.code == "MG216"]
    assert messages == (
        ["Start one process with `torchrun --nproc_per_node 1`; `python train.py` no longer works."] if says else []
    )


def test_a_local_rank_of_none_is_said_to_be_another() -> None:
    options = 'parser.add_argument("--local_rank", type=int, default=-1)\n'
    found = converted(
        script(
            'if args.local_rank != -1:\n    dist.init_process_group("nccl")\n',
            options=options,
            train=ALONE.format(test="args.local_rank != -1"),
        )
    )
    assert found.said("MG216").message.endswith("Local rank is 0, not -1.")


def test_a_script_for_the_cpu_alone_is_told_how_to_stay_there() -> None:
    on_cpu = TRAIN.replace(".cuda()", "")
    assert (
        "DS_ACCELERATOR=cpu"
        in converted(script('dist.init_process_group("gloo")\n', train=on_cpu)).said("MG213", Kind.KEPT).message
    )
    for text in (
        script('dist.init_process_group("gloo")\n'),
        script('dist.init_process_group("nccl")\n', train=on_cpu),
    ):
        assert "MG213" not in {change.code for change in converted(text).changes}


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read", ['os.environ["LOCAL_RANK"]', 'os.environ.get("LOCAL_WORLD_SIZE", "1")', '"GROUP_RANK" in os.environ']
)
def test_both_launchers_start_a_script(read: str) -> None:
    assert converted(script() + f"print({read})\n").launch == (
        TORCHRUN,
        "deepspeed --num_gpus 2 --no_local_rank train.py",
    )


@pytest.mark.parametrize("name", ["LOCAL_WORLD_SIZE", "GROUP_RANK"])
def test_a_script_that_needs_what_torchrun_sets_is_started_by_it(name: str) -> None:
    assert converted(script() + f'print(os.environ["{name}"])\n').launch == (TORCHRUN,)


@pytest.mark.parametrize(
    ("options", "tail", "placeholders"),
    [
        ('parser.add_argument("data", metavar="DIR")', " DIR", ("DIR",)),
        ('parser.add_argument("data_path", type=str)', " DATA_PATH", ("DATA_PATH",)),
        ('parser.add_argument("--data", metavar="a dir", required=True)', " --data A_DIR", ("A_DIR",)),
        ('parser.add_argument("-o", "--out-dir", required=True)', " --out-dir OUT_DIR", ("OUT_DIR",)),
        (
            'parser.add_argument("--out", required=True)\nparser.add_argument("files", nargs="+")',
            " FILES --out OUT",
            ("FILES", "OUT"),
        ),
        ('parser.add_argument("data", nargs="?", default="d")', "", ()),
        ('parser.add_argument("rest", nargs=argparse.REMAINDER)', "", ()),
        ('parser.add_argument("--lr", default=0.1)', "", ()),
        ('if args.more:\n    parser.add_argument("data")', "", ()),
        ('sub = parser.add_subparsers()\none = sub.add_parser("one")\none.add_argument("data")', "", ()),
        (
            'group = parser.add_argument_group("paths")\ngroup.add_argument("--data", required=True)',
            " --data DATA",
            ("DATA",),
        ),
    ],
)
def test_what_the_parser_asks_for_is_to_be_filled_in(options: str, tail: str, placeholders: tuple[str, ...]) -> None:
    found = converted(script(options=f"{options}\n".replace("args.more", "os.environ.get('X')")))
    assert found.launch == (TORCHRUN + tail, f"deepspeed --num_gpus 2 --no_local_rank train.py{tail}")
    assert found.placeholders == placeholders


def test_a_parser_of_another_module_and_one_that_reads_nothing() -> None:
    options = (
        "import argparse\ndef get():\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('data')\n    return parser\nif __name__ == '__main__':\n"
        "    get().add_argument('more')\n"
    )
    text = f'{HEAD}from options import get\nargs = get().parse_args()\ndist.init_process_group("nccl")\n{TRAIN}'
    assert converted(text, {"options.py": options}).placeholders == ("DATA",)
    assert converted(text.replace("get().parse_args()", "1"), {"options.py": options}).placeholders == ()


@pytest.mark.parametrize(
    ("option", "use", "placeholders"),
    [
        ("default=None, type=str", "url = 'file://' + os.path.realpath(args.file)", ("FILE",)),
        ("type=str", "os.makedirs(args.file, exist_ok=True)", ("FILE",)),
        ("default='x'", "os.makedirs(args.file, exist_ok=True)", ()),
        ("default=None", "if args.file:\n    os.makedirs(args.file)", ()),
        ("default=None", "path = os.path.realpath(args.file) if args.file else ''", ()),
    ],
)
def test_an_option_that_is_none_and_taken_for_a_path_is_to_be_filled_in(
    option: str, use: str, placeholders: tuple[str, ...]
) -> None:
    found = converted(
        script(f'{use}\ndist.init_process_group("nccl")\n', options=f'parser.add_argument("--file", {option})\n')
    )
    assert found.placeholders == placeholders


@pytest.mark.parametrize(
    ("options", "test", "tail"),
    [
        ('parser.add_argument("--do_train", action="store_true")', "args.do_train", " --do_train"),
        ('parser.add_argument("--mode", default="test")', 'args.mode == "train"', " --mode train"),
        ('parser.add_argument("--eval", action="store_true")', "not args.eval", ""),
        ('parser.add_argument("--mode", default="train")', 'args.mode == "train"', ""),
        ('parser.add_argument("--ranks", type=int, default=1)', "args.ranks > 1", " --ranks 2"),
    ],
)
def test_options_without_which_nothing_is_trained_are_part_of_the_command(options: str, test: str, tail: str) -> None:
    found = converted(script(options=f"{options}\n", train=f"if {test}:\n{block(TRAIN)}"))
    assert found.launch[0] == TORCHRUN + tail
    early = converted(
        script(f'dist.init_process_group("nccl")\nif not ({test}):\n    raise SystemExit\n', options=f"{options}\n")
    )
    assert early.launch[0] == TORCHRUN + tail


def test_a_size_that_is_an_option_is_given() -> None:
    options = (
        'parser.add_argument("--world_size", type=int, default=1)\nparser.add_argument("--local_rank", type=int)\n'
    )
    found = converted(
        script('dist.init_process_group("nccl", rank=args.local_rank, world_size=args.world_size)\n', options=options)
    )
    assert found.launch[0] == f"{TORCHRUN} --world_size 2"


@pytest.mark.parametrize(
    ("path", "imports", "files", "command"),
    [
        ("lab/main.py", "from .data import x\n", {"lab/data.py": "x = 1"}, "torchrun --nproc_per_node 2 -m lab.main"),
        (
            "src/lab/main.py",
            "from lab.data import x\n",
            {"src/lab/data.py": "x = 1"},
            "cd src && torchrun --nproc_per_node 2 -m lab.main",
        ),
        ("lab/main.py", "from data import x\n", {"lab/data.py": "x = 1"}, "torchrun --nproc_per_node 2 lab/main.py"),
        (
            "my-lab/main.py",
            "from .data import x\n",
            {"my-lab/data.py": "x = 1"},
            "torchrun --nproc_per_node 2 my-lab/main.py",
        ),
        (
            "lab/main.py",
            "import sys\nsys.path.append(os.path.dirname(os.path.dirname(__file__)))\nfrom other import x\n",
            {"other.py": "x = 1"},
            "torchrun --nproc_per_node 2 lab/main.py",
        ),
    ],
)
def test_a_script_is_started_from_where_its_imports_are_found(
    path: str, imports: str, files: dict[str, str], command: str
) -> None:
    found = converted(script().replace("import os\n", f"import os\n{imports}", 1), files, path)
    assert found.launch[0] == command


@pytest.mark.parametrize(
    ("options", "files", "command"),
    [
        ('parser.add_argument("--data", default="../data")\n', {}, "cd lab && torchrun --nproc_per_node 2 main.py"),
        (
            'parser.add_argument("--config", default="conf/a.yaml")\n',
            {"lab/conf/a.yaml": "x"},
            "cd lab && torchrun --nproc_per_node 2 main.py",
        ),
        (
            'parser.add_argument("--config", default="conf/a.yaml")\n',
            {"conf/a.yaml": "x"},
            "torchrun --nproc_per_node 2 lab/main.py",
        ),
        (
            "",
            {"README.md": "Run\n```\npython -m torch.distributed.launch main.py --x\n```\n"},
            "cd lab && torchrun --nproc_per_node 2 main.py",
        ),
        ("", {"README.md": "Run\n```\npython lab/main.py\n```\n"}, "torchrun --nproc_per_node 2 lab/main.py"),
    ],
)
def test_a_script_is_started_in_the_folder_that_its_paths_need(
    options: str, files: dict[str, str], command: str
) -> None:
    assert converted(script(options=options), files, "lab/main.py").launch[0] == command


@pytest.mark.parametrize(
    ("options", "start", "command", "count"),
    [
        ("", "mp.spawn(run, args=(2,), nprocs=torch.cuda.device_count())", "python train.py", (DEVICES, "")),
        (
            'parser.add_argument("--gpus", type=int, default=1)\n',
            "mp.spawn(run, args=(args.gpus,), nprocs=args.gpus)",
            "python train.py --gpus 2",
            ("--gpus", "1"),
        ),
        (
            'parser.add_argument("--gpus", type=int, default=4)\n',
            "n = args.gpus\nmp.spawn(run, args=(n,), nprocs=n)",
            "python train.py",
            ("--gpus", "4"),
        ),
        (
            'parser.add_argument("--gpus", type=int, default=torch.cuda.device_count())\n',
            "mp.spawn(run, args=(2,), nprocs=args.gpus)",
            "python train.py",
            ("--gpus", DEVICES),
        ),
    ],
)
def test_how_many_processes_a_script_starts(options: str, start: str, command: str, count: tuple[str, str]) -> None:
    found = converted(worker('dist.init_process_group("nccl", rank=rank, world_size=size)', start, options=options))
    assert found.launch == (command,)
    assert found.start is not None
    assert (found.start.count, found.start.default) == count


def test_a_refused_script_has_no_command() -> None:
    found: Converted = converted(script() + "import torch.distributed.rpc\ntorch.distributed.rpc.init_rpc('a')\n")
    assert found.status is Status.REFUSED
    assert found.launch == ()


SAVED = (
    HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument({option})
args = parser.parse_args()
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if args.{name} == 0:
    torch.save(model.state_dict(), "model.pt")
"""
)


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ('"--local_rank", type=int, default=0', "local_rank"),
        ('"--local-rank", type=int', "local_rank"),
        ('"--gpu", type=int, default=int(os.environ["LOCAL_RANK"])', "gpu"),
    ],
)
def test_an_option_that_says_the_rank_differs_by_rank(option: str, name: str) -> None:
    found = converted(SAVED.format(option=option, name=name), zero_stage=3)
    assert f"ds_compat.gather_checkpoint(model, optimizer=False)\nif args.{name} == 0:" in found.text


# -- other ways to start processes -------------------------------------------------------------------------------------

GROUP = 'dist.init_process_group("nccl", rank=rank, world_size=size)'


@pytest.mark.parametrize("maker", ['mp.get_context("spawn")', "multiprocessing.get_context()", "mp", "multiprocessing"])
def test_processes_of_any_context_get_their_number(maker: str) -> None:
    start = (
        f"import multiprocessing\nmaker = {maker}\nfor index in range(4):\n"
        "    maker.Process(target=run, args=(index, 4)).start()"
    )
    found = converted(worker(GROUP, start))
    assert SPAWNED in found.text
    assert found.start == Start(spawned=True, count="4", own=True)


@pytest.mark.parametrize(
    ("start", "group", "marked", "command"),
    [
        ("launch(run, 8)", GROUP, True, "python train.py"),
        ("launch(run, 8)", "from elsewhere import joined\njoined()", True, TORCHRUN),
        ("launch(run, 8)", 'dist.init_process_group("nccl")', False, TORCHRUN),
        ("run(*launch())", GROUP, False, TORCHRUN),
    ],
)
def test_code_that_is_not_read_and_starts_the_training_is_marked(
    start: str, group: str, marked: bool, command: str
) -> None:
    found = converted(worker(group, f"from elsewhere import launch\n{start}"))
    assert ("MG208" in found.codes(Kind.TODO)) is marked
    assert found.launch[0] == command


def test_processes_that_are_told_their_rank_by_an_option_are_started_one_by_one() -> None:
    options = "".join(f'parser.add_argument("--{name}", type=int, default=0)\n' for name in ("rank", "gpu", "size"))
    group = (
        'dist.init_process_group("nccl", init_method="tcp://localhost:1", world_size=args.size, rank=args.rank)\n'
        "torch.cuda.set_device(args.gpu)\n"
    )
    found = converted(script(group, options=options))
    assert found.launch == ("for RANK in 0 1; do python train.py --size 2 --rank $RANK --gpu $RANK & done; wait",)
    assert 'os.environ.setdefault("LOCAL_RANK", str(args.gpu))' in found.text


@pytest.mark.parametrize(
    ("test", "unsure"),
    [
        ("args.gpus > 1", False),
        ("args.gpus >= 2", False),
        ("args.gpus > 2", True),
        ("'X' in os.environ", True),
        ("args.many", False),
    ],
)
def test_what_else_decides_about_a_spawn_makes_it_unsure(test: str, unsure: bool) -> None:
    options = 'parser.add_argument("--gpus", type=int, default=4)\nparser.add_argument("--many", action="store_true")'
    found = converted(
        worker(GROUP, f"if {test}:\n    mp.spawn(run, args=(args.gpus,), nprocs=args.gpus)", options=options)
    )
    assert found.start is not None
    assert (found.start.unsure, found.start.count) == (unsure, "--gpus")


def test_each_turn_of_a_loop_around_a_spawn_has_processes_of_its_own() -> None:
    found = converted(worker(GROUP, "for fold in range(3):\n    mp.spawn(run, args=(2,), nprocs=2)"))
    assert "MG712" not in {change.code for change in found.changes}


@pytest.mark.parametrize(
    "other", ["else:\n    model = DDP(model)\n", "else:\n    model = DDP(model, device_ids=[0])\n"]
)
def test_a_model_that_is_wrapped_on_all_ways_needed_a_launcher_before(other: str) -> None:
    made = (
        'if "RANK" in os.environ:\n    dist.init_process_group("nccl")\n'
        f"model = nn.Linear(4, 4).cuda()\nif args.a:\n    model = DDP(model)\n{other}"
    )
    found = converted(
        script(
            made,
            options='parser.add_argument("--a", type=int)\n',
            train=TRAIN.replace("model = DDP(nn.Linear(4, 4).cuda())\n", ""),
        )
    )
    assert "MG216" not in {change.code for change in found.changes}


def test_a_device_that_is_reckoned_is_the_local_rank() -> None:
    setup = SLURM.splitlines()[0] + "\nlocal = rank - 4 * (rank // 4)\ntorch.cuda.set_device(local)\n" + OWN
    assert 'os.environ.setdefault("LOCAL_RANK", str(local))\n' in converted(script(setup)).text


def test_nodes_are_counted_for_processes_that_the_script_starts() -> None:
    options = (
        "".join(f'parser.add_argument("--{name}", type=int, default=-1)\n' for name in ("nodes", "node"))
        + 'parser.add_argument("--many", action="store_true")\n'
    )
    setup = (
        "if args.nodes > 1 or args.many:\n    if args.many:\n        args.node = args.node * size + rank\n"
        '    dist.init_process_group("nccl", world_size=args.nodes, rank=args.node)'
    )
    start = (
        "if args.many:\n    args.nodes = 2 * args.nodes\n"
        "    mp.spawn(run, nprocs=2, args=(2, args))\nelse:\n    run(0, 2, args)"
    )
    train = TRAIN.replace(
        "DDP(nn.Linear(4, 4).cuda())", "nn.Linear(4, 4).cuda()\nif args.nodes > 1 or args.many:\n    model = DDP(model)"
    )
    found = converted(worker(setup, start, options=options, parameters="rank, size, args", train=train))
    assert found.launch == ("python train.py --many --nodes 1 --node 0",)


def test_a_save_of_a_worker_that_is_spawned_or_called_is_gathered_once_where_all_ranks_are() -> None:
    options = (
        'parser.add_argument("--many", action="store_true")\nparser.add_argument("--nodes", type=int, default=1)\n'
    )
    setup = 'if args.many or args.nodes > 1:\n    dist.init_process_group("nccl", world_size=size, rank=rank)'
    start = "if args.many:\n    mp.spawn(run, nprocs=2, args=(2, args))\nelse:\n    run(0, args.nodes, args)"
    train = TRAIN.replace(
        "DDP(nn.Linear(4, 4).cuda())", "nn.Linear(4, 4).cuda()\nif args.many or args.nodes > 1:\n    model = DDP(model)"
    )
    train += (
        'if not args.many or (args.many and rank % 2 == 0):\n    torch.save({"o": optimizer.state_dict()}, "a.pt")\n'
    )
    text = converted(worker(setup, start, options=options, parameters="rank, size, args", train=train)).text
    assert text.count("gather_checkpoint(") == 1
    assert text.index("gather_checkpoint(") < text.index("if not args.many or (")


def test_an_accelerator_of_any_kind_is_a_device() -> None:
    setup = (
        "device = torch.accelerator.current_accelerator() "
        'if torch.accelerator.is_available() else torch.device("cpu")\n'
    )
    train = TRAIN.replace(
        "model = DDP(nn.Linear(4, 4).cuda())",
        'model = nn.Linear(4, 4)\nif device.type == "cuda":\n    model = DDP(model.to(device))',
    )
    found = converted(
        script(
            setup
            + 'dist.init_process_group("nccl")\ntorch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))\n',
            train=train,
        )
    )
    assert found.status is Status.CONVERTED


def test_a_worker_that_is_also_called_for_the_default_device_gets_a_number() -> None:
    found = converted(
        HEAD
        + """
        import argparse
        import torch.multiprocessing as mp

        def worker(gpu, args):
            rank = gpu if args.spawn else args.rank
            dist.init_process_group("nccl", init_method=args.url, world_size=args.size, rank=rank)
            model = nn.Linear(4, 4).cuda(gpu)
            model = DDP(model, device_ids=[gpu]) if gpu is not None else DDP(model)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for x in torch.utils.data.DataLoader(list(range(4))):
                loss = model(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        parser = argparse.ArgumentParser()
        parser.add_argument("--spawn", action="store_true")
        parser.add_argument("--gpu", type=int)
        parser.add_argument("--rank", type=int, default=0)
        parser.add_argument("--size", type=int, default=1)
        parser.add_argument("--url", default="tcp://localhost:1234")
        args = parser.parse_args()
        if args.spawn:
            mp.spawn(worker, nprocs=args.size, args=(args,))
        else:
            worker(args.gpu, args)
        """
    )
    assert 'os.environ.setdefault("LOCAL_RANK", str(gpu or 0))' in found.text


def test_a_parser_that_reads_nothing_in_this_run_stays() -> None:
    other = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int)\n"
    options = "parser = argparse.ArgumentParser()\nparser.add_argument('--lr')\nargs = parser.parse_args()\n"
    found = converted(
        script(options=f"import argparse\nfrom other import parser as unread\n{options}"), {"other.py": other}
    )
    assert "other.py" not in found.texts


def test_a_worker_that_looks_its_rank_up_in_a_list() -> None:
    group = 'dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", world_size=2, rank=device)'
    start = """
devices = list(map(int, args.gpus.split(",")))
if len(devices) == 1:
    run(0, devices)
else:
    mp.spawn(run, args=(devices,), nprocs=len(devices))
"""
    found = converted(
        worker(
            f"device = devices[number]\n{group}",
            start,
            options='parser.add_argument("--gpus", default="0")\n',
            parameters="number, devices",
        )
    )
    assert found.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}
    assert group in found.text


def test_the_device_that_each_way_chooses_is_the_local_rank() -> None:
    """What is read only under one launcher must not be asked for under the other, as the default of setdefault is."""
    found = converted(
        HEAD
        + """
import argparse
parser = argparse.ArgumentParser()
args = parser.parse_args()
def init(args):
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
        args.gpu = int(os.environ["LOCAL_RANK"])
    elif "SLURM_PROCID" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
        args.gpu = args.rank % torch.cuda.device_count()
    else:
        args.distributed = False
        return
    args.distributed = True
    torch.cuda.set_device(args.gpu)
    dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
init(args)
model = net
if args.distributed:
    model = DDP(net, device_ids=[args.gpu])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
    )
    assert 'os.environ.setdefault("LOCAL_RANK", str(args.gpu))' in found.text
    assert "SLURM_LOCALID" not in found.text


def test_a_worker_that_is_called_for_one_process_as_well_has_the_number_of_its_process() -> None:
    found = converted(
        HEAD
        + """
import argparse
import torch.multiprocessing as mp
parser = argparse.ArgumentParser()
parser.add_argument("--ngpus", type=int, default=1)
args = parser.parse_args()
def start(gpu, size):
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", rank=gpu, world_size=size, init_method="tcp://localhost:29500")
def main(local_rank, args):
    if args.ngpus > 1:
        start(local_rank, args.ngpus)
    model = nn.Linear(4, 4).cuda(local_rank)
    if dist.is_initialized():
        model = DDP(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    if args.ngpus == 1:
        main(local_rank=0, args=args)
    else:
        mp.spawn(main, nprocs=args.ngpus, args=(args,))
"""
    )
    assert 'os.environ.setdefault("LOCAL_RANK", str(gpu or 0))' in found.text
