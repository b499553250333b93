"""The commands that start a script, and the environment they get."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from pathlib import Path

import pytest

from dsmigrate.verify import launching
from dsmigrate.verify.launching import HARNESS, Launch, base_environment, kind_of, plan, reserved_port


def launch(kind: str, source: str = "", *arguments: str) -> Launch:
    return plan(
        python="/usr/bin/python",
        script="train.py",
        arguments=arguments,
        kind=kind,
        processes=3,
        port=1234,
        environment={"A": "b"},
        source=source,
    )


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import torch\nmain()\n", "ranks"),
        ("mp.spawn(main, nprocs=2)\n", "python"),
        ("torch.multiprocessing.spawn(main, nprocs=2)\n", "python"),
        ("for r in range(2):\n    mp.Process(target=main, args=(r,)).start()\n", "python"),
        ("rank = int(os.environ['SLURM_PROCID'])\n", "srun"),
        ("rank = int(os.environ.get('SLURM_PROCID', 0))\n", "srun"),
        ("rank = int(os.environ.get('RANK', os.environ.get('SLURM_PROCID')))\n", "ranks"),
        ("if 'SLURM_JOB_ID' in os.environ:\n    pass\n", "ranks"),
        ("rank = os.environ['SLURM_PROCID']\nmp.spawn(main, nprocs=2)\n", "python"),
        ("# no spawn here\nrespawn(1)\n", "ranks"),
    ],
)
def test_scripts_that_start_processes_themselves_are_run_by_python(source: str, kind: str) -> None:
    assert kind_of(source, "auto") == kind
    assert kind_of(source, "torchrun") == "torchrun"


def test_every_rank_gets_what_torchrun_gives() -> None:
    found = launch("ranks", "", "--epochs", "2")
    assert found.shown == "torchrun --nproc_per_node 3 train.py --epochs 2"
    assert [start.environment["RANK"] for start in found.starts] == ["0", "1", "2"]
    for start in found.starts:
        assert start.command == ("/usr/bin/python", "train.py", "--epochs", "2")
        assert start.environment["WORLD_SIZE"] == start.environment["LOCAL_WORLD_SIZE"] == "3"
        assert start.environment["MASTER_PORT"] == "1234"
        assert start.environment["LOCAL_RANK"] == start.environment["RANK"]
        assert start.environment["A"] == "b"


def test_every_task_gets_what_srun_gives_and_no_rank() -> None:
    found = launch("srun", "", "--epochs", "2")
    assert found.shown == "srun --ntasks 3 python train.py --epochs 2"
    assert [start.environment["SLURM_PROCID"] for start in found.starts] == ["0", "1", "2"]
    for start in found.starts:
        assert start.environment["SLURM_NTASKS"] == "3"
        assert start.environment["SLURM_LOCALID"] == start.environment["SLURM_PROCID"]
        assert "RANK" not in start.environment


@pytest.mark.parametrize("argument", ["--local_rank", "--local-rank"])
def test_a_script_that_wants_its_rank_as_an_argument_gets_it(argument: str) -> None:
    found = launch("ranks", f"parser.add_argument('{argument}', type=int)\n")
    assert found.starts[2].command == ("/usr/bin/python", "train.py", f"{argument}=2")
    assert found.shown.startswith("python -m torch.distributed.launch")
    both = launch("ranks", f"parser.add_argument('{argument}', default=os.environ.get('LOCAL_RANK'))\n")
    assert both.starts[2].command == ("/usr/bin/python", "train.py")


def test_launchers_of_their_own() -> None:
    torchrun = launch("torchrun").starts
    assert len(torchrun) == 1
    assert torchrun[0].command[1:5] == ("-m", "torch.distributed.run", "--nproc_per_node", "3")
    deepspeed = launch("deepspeed").starts[0].command
    world = next(word for word in deepspeed if word.startswith("--world_info=")).partition("=")[2]
    assert json.loads(base64.urlsafe_b64decode(world)) == {"localhost": [0, 1, 2]}
    assert "--no_local_rank" in deepspeed
    assert "--no_local_rank" not in launch("deepspeed", "add_argument('--local_rank')").starts[0].command
    assert launch("python").starts[0].command == ("/usr/bin/python", "train.py")


def test_what_another_launcher_has_left_behind_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID", "MASTER_PORT"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    found = base_environment("/env/bin/python", cpu=True)
    assert not {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID", "MASTER_PORT"} & set(found)
    assert found["PYTHONPATH"].split(":") == [str(HARNESS), "/mine"]
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert found["PATH"].split(os.pathsep)[0] == "/env/bin"
    on_gpus = base_environment("/env/bin/python", cpu=False)
    assert "CUDA_VISIBLE_DEVICES" not in on_gpus or on_gpus["CUDA_VISIBLE_DEVICES"]


def test_a_reserved_port_is_for_who_asks_for_it() -> None:
    with reserved_port() as port, socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        one.listen()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give reserved ports to nobody at all")
def test_nobody_gets_a_reserved_port_by_chance() -> None:
    with reserved_port() as port:
        for _ in range(40_000):  # the system goes through all that it has, at random
            with socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("127.0.0.1", 0))
                assert one.getsockname()[1] != port


def test_the_shared_memory_of_a_run_is_freed_and_that_of_others_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "SHARED_MEMORY", tmp_path)
    names = [f"deepspeed_allreduce_buffer_0_127.0.0.1_{port}_{rank}" for port in (4242, 42) for rank in (0, 1)]
    for name in (*names, "torch_4242_0"):
        (tmp_path / name).touch()
    launching.free_shared_memory(4242)
    assert {path.name for path in tmp_path.iterdir()} == {*names[2:], "torch_4242_0"}
