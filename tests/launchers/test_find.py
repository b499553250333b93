"""The whole way: a project in, one patch over scripts and launchers out, all of it written or nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.schemas_location import schema_file

Captured = pytest.CaptureFixture[str]
WORKER = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def worker(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    model = DDP(torch.nn.Linear(4, 4).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.zeros(64, 4), batch_size=8)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
"""
SCRIPT = f"""{WORKER}\
    worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))
""".replace("import torch.multiprocessing as mp\n", "", 1).replace("import torch\n", "import os\n\nimport torch\n", 1)
SPAWNS = f"""{WORKER}\
    size = torch.cuda.device_count()
    mp.spawn(worker, args=(size,), nprocs=size)
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "pyproject.toml": "[project]\nname = 'x'\n",
        "src/train.py": SCRIPT,
        "run.sh": "#!/bin/sh\ncd src\npython train.py --lr 1\n",
        "src/job.sbatch": "#!/bin/sh\n#SBATCH -N 2\nsrun python train.py\n",
        ".venv/pyvenv.cfg": "",
        ".venv/run.sh": "python ../src/train.py\n",
        ".hidden/run.sh": "python ../src/train.py\n",
        "notes.txt": "python src/train.py\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def tree() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def test_launchers_are_left_alone_unless_they_are_asked_for(capsys: Captured) -> None:
    run(["src/train.py", "--write"])
    assert Path("run.sh").read_text().endswith("python train.py --lr 1\n")
    assert "run.sh" not in capsys.readouterr().err


def test_one_patch_holds_scripts_and_launchers_and_applies(capsys: Captured) -> None:
    before = tree()
    assert run(["src/train.py", "--with-launchers", "--verbose"]) == 1
    out, err = capsys.readouterr()
    assert tree() == before
    assert "run.sh: converted\n  Converted\n    run.sh:3  MG221  python → torchrun: one process, as before" in err
    assert "src/job.sbatch: unchanged\n  Left for you\n    src/job.sbatch:3  MG224" in err
    assert "dsmigrate src/train.py --with-launchers --write" in err
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True)
    assert Path("run.sh").read_text() == "#!/bin/sh\ncd src\ntorchrun --nproc_per_node 1 train.py --lr 1\n"
    capsys.readouterr()
    run(["src/train.py", "--with-launchers"])
    assert not capsys.readouterr().out, "a second run has nothing to do"


def test_the_lines_of_a_script_that_starts_its_processes_stay(capsys: Captured) -> None:
    Path("src/train.py").write_text(SPAWNS)
    before = tree()
    run(["src/train.py", "--with-launchers", "--write", "--verbose"])
    err = capsys.readouterr().err
    assert "run.sh:3  MG223  stays  (the script goes on starting its own processes)" in err
    after = tree()
    assert after["run.sh"] == before["run.sh"]
    assert after["src/train.py"] != before["src/train.py"]


def test_the_json_says_which_files_are_launchers(capsys: Captured) -> None:
    run(["src/train.py", "--with-launchers", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads(schema_file("output/migrate.schema.json").read_text()))
    assert {file["path"]: file["role"] for file in found["files"]} == {
        "src/train.py": "script", "run.sh": "launcher", "src/job.sbatch": "launcher",
    }  # fmt: skip


def test_a_setting_asks_for_them_too() -> None:
    Path("dsmigrate.toml").write_text('with-launchers = true\nlauncher = "deepspeed"\n')
    assert run(["src/train.py", "--write"]) == 1
    assert Path("run.sh").read_text() == "#!/bin/sh\ncd src\ndeepspeed --num_gpus 1 --no_local_rank train.py --lr 1\n"


@pytest.mark.parametrize("text", ["with-launchers = 1\n", 'launcher = "mpirun"\n'])
def test_a_setting_that_is_not_allowed_is_said_with_its_line(text: str, capsys: Captured) -> None:
    Path("dsmigrate.toml").write_text(text)
    assert run(["src/train.py"]) == 2
    assert "dsmigrate.toml:1: " in capsys.readouterr().err


def test_an_output_directory_keeps_the_way_below_the_project() -> None:
    before = tree()
    assert run(["src/train.py", "--with-launchers", "--output", "out"]) == 1
    assert set(tree()) - set(before) == {"out/run.sh", "out/src/train.py", "out/src/ds_config.json"}
    assert {name: text for name, text in tree().items() if name in before} == before


def test_nothing_is_written_where_a_launcher_cannot_be(capsys: Captured) -> None:
    Path("run.sh").chmod(0o444)
    before = tree()
    assert run(["src/train.py", "--with-launchers", "--write"]) == 2
    assert tree() == before
    assert "Nothing was written" in capsys.readouterr().err


def test_a_refused_script_leaves_its_launchers_alone() -> None:
    Path("src/train.py").write_text(SCRIPT.replace("loss.backward()", "loss.backward(create_graph=True)"))
    before = tree()
    run(["src/train.py", "--with-launchers", "--write"])
    assert Path("run.sh").read_bytes() == before["run.sh"]


def test_line_ends_bytes_and_mode_stay() -> None:
    Path("run.sh").write_bytes("#!/bin/sh\r\ncd src\r\n# é\r\npython train.py\r\n".encode("latin-1"))
    Path("run.sh").chmod(0o755)
    run(["src/train.py", "--with-launchers", "--write"])
    assert Path("run.sh").read_bytes() == (
        "#!/bin/sh\r\ncd src\r\n# é\r\ntorchrun --nproc_per_node 1 train.py\r\n".encode("latin-1")
    )
    assert Path("run.sh").stat().st_mode & 0o777 == 0o755
