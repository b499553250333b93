"""Launch lines as they come out of a conversion really start the same processes, with the same ranks and arguments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dsmigrate.cli.app import run
from dsmigrate.codemod.model import Options, Start
from dsmigrate.launchers.convert import convert
from dsmigrate.launchers.model import Script

from .launching import Outcome, free_port, launch_cold

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("launch lines")]

PROBE = """\
import json, os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "CUDA_VISIBLE_DEVICES")
arguments = [a for a in sys.argv[1:] if not a.startswith(("--local_rank=", "--local-rank="))]
told = len(arguments) < len(sys.argv) - 1
with open(f"{os.environ['RANK']}.json", "w") as file:
    json.dump([*(os.environ.get(name) for name in names), told, arguments], file)
"""
SCRIPT = Script("probe.py", Start(local_rank=True))
LINES = [
    "torchrun --nproc_per_node 2 --master_port {port} probe.py --name \"a b\" '$x'",
    "torchrun --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:{port} -m probe --x=1",
    "N=2\npython -m torch.distributed.launch --nproc_per_node $N --master_port={port} \\\n  probe.py -v",
    "CUDA_VISIBLE_DEVICES=1,3 torchrun --nproc_per_node 2 --master_port {port} probe.py",
]


def started(folder: Path, text: str) -> list[list[object]]:
    """What the processes of a shell script saw, by rank; the port is left out where the launcher was free to choose."""
    for old in folder.glob("*.json"):
        old.unlink()
    (folder / "run.sh").write_text(f"export LOCAL_SIZE=4\nset -e\n{text}\n")
    outcome = launch_cold(["bash", "run.sh"], folder)
    assert outcome.succeeded, outcome.excerpt()
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


@pytest.mark.parametrize("line", LINES)
def test_the_deepspeed_launcher_starts_what_torchrun_started(line: str, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    text = line.format(port=free_port())
    done = convert(
        text, "shell", "run.sh", [SCRIPT], exists=lambda way: way == "probe.py", options=Options(launcher="deepspeed")
    )
    assert "deepspeed " in done.text
    before, after = started(tmp_path, text), started(tmp_path, done.text)
    assert len(before) == 2
    if "c10d" in line:  # there the port is the rendezvous', and each rank is told another
        before, after = [[*rank[:3], *rank[4:]] for rank in before], [[*rank[:3], *rank[4:]] for rank in after]
    if "CUDA_VISIBLE_DEVICES" not in line:  # torchrun leaves it as it is, the deepspeed launcher names the devices
        before, after = [[*rank[:-3], *rank[-2:]] for rank in before], [[*rank[:-3], *rank[-2:]] for rank in after]
    assert after == before


def test_a_script_that_spawns_trains_under_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on spawning, and its shell script stays: the same losses, to the last digit but one."""
    example = Path(__file__).parents[2] / "examples" / "spawn_regression.py"
    shutil.copy(example, tmp_path / "train.py")
    (tmp_path / "run.sh").write_text(
        "set -e\nOPTIONS='--epochs 1'\npython train.py --nprocs 2 $OPTIONS --lr 0.01 | cat\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run(["train.py", "--with-launchers", "--zero-stage", "1", "--output", "new", "--quiet"]) < 2
    assert not (tmp_path / "new" / "run.sh").exists()
    shutil.copy(tmp_path / "run.sh", tmp_path / "new")
    before, after = (_trained(folder) for folder in (tmp_path, tmp_path / "new"))
    assert before.readings
    assert [dict(reading.values) for reading in after.readings] == [
        pytest.approx(dict(reading.values), rel=1e-5) for reading in before.readings
    ]


def _trained(folder: Path) -> Outcome:
    for _ in range(2):
        outcome = launch_cold(["bash", "run.sh"], folder)
        if outcome.succeeded and outcome.readings:
            break
    assert outcome.readings, outcome.excerpt()
    return outcome
