"""The `dsmigrate verify` that a report names makes the very conversion of the report."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dsmigrate.cli.app import run
from dsmigrate.settings.toml import forget
from dsmigrate.verify import job
from dsmigrate.verify.compare import compare
from dsmigrate.verify.model import Verdict, Verification
from dsmigrate.verify.request import Request
from dsmigrate.verify.scenes import Scenes
from tests.verify import runs

EXAMPLES = Path(__file__).parents[2] / "examples"
RANK_BY_OPTION = """\
import argparse
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int)
args = parser.parse_args()
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=args.rank, world_size=2)
torch.cuda.set_device(args.rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(2, 4).cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
Captured = pytest.CaptureFixture[str]


def said(words: list[str], capsys: Captured) -> str | None:
    """The command that the report of a dry run names."""
    assert run(words) in {0, 1}
    lines = map(str.strip, capsys.readouterr().err.splitlines())
    return next((line for line in lines if "dsmigrate verify " in line), None)


@pytest.mark.parametrize(
    ("script", "flags"),
    [
        ("warmup_resume.py", ["--checkpoints", "engine", "--zero-stage", "1"]),
        ("segmentation_accum.py", ["--offload", "cpu"]),
        ("spawn_regression.py", ["--optimizer", "config", "--precision", "bf16", "--target-version", "0.15.4"]),
        ("spawn_regression.py", ["--config", "my config.json"]),
    ],
)
def test_the_command_of_a_report_makes_the_conversion_of_the_report(
    script: str, flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    forget()
    asked: list[Request] = []

    def verify(request: Request, _say: Callable[[str], None], _progress: object) -> Verification:
        asked.append(request)
        return Verification(request.original, None, "CPU", (Verdict(None, compare(runs.run(), runs.converted())),))

    monkeypatch.setattr(job, "verify", verify)
    project, written = tmp_path / "project", tmp_path / "written"
    project.mkdir()
    shutil.copy(EXAMPLES / script, project / script)
    (project / "my config.json").write_text('{"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 1}}')
    shutil.copytree(project, written)
    monkeypatch.chdir(project)
    command = said([script, *flags], capsys)
    assert command is not None
    assert run(shlex.split(command)[1:]) == 0
    (request,) = asked
    scene, _ = Scenes(request, tmp_path / "scenes").converted(request.stages[0] if request.stages else None)
    monkeypatch.chdir(written)
    assert run([script, *flags, "--write", "--force", "--quiet"]) in {0, 1}
    for file in written.iterdir():
        assert (scene.folder / file.name).read_bytes() == file.read_bytes(), file.name


def test_settings_of_the_conversion_are_refused_for_a_script_that_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    forget()
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "converted.py"):
        Path(name).write_text("x = 1\n")
    assert run(["verify", "train.py", "converted.py", "--optimizer", "config"]) == 2
    assert "--optimizer is for the conversion, and CONVERTED is one" in capsys.readouterr().err
    assert run(["verify", "train.py", "--offload", "cpu", "--zero-stage", "0,2"]) == 2
    assert "offload cpu needs ZeRO stage 1, 2 or 3" in capsys.readouterr().err


def test_a_script_that_starts_from_a_folder_is_verified_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    forget()
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "a b"
    folder.mkdir()
    text = (EXAMPLES / "spawn_regression.py").read_text()
    (folder / "train.py").write_text(text)
    (folder / "README.md").write_text("`python train.py`\n")
    assert said(["a b/train.py"], capsys) == "cd 'a b' && dsmigrate verify train.py -- --nprocs 2"


def test_no_command_is_named_where_verify_has_no_way_to_tell_the_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    forget()
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(RANK_BY_OPTION)
    assert said(["train.py"], capsys) is None
    Path("train.py").write_text((EXAMPLES / "spawn_regression.py").read_text())
    assert said(["train.py"], capsys) == "dsmigrate verify train.py -- --nprocs 2"
    assert said(["train.py", "--no-follow"], capsys) is None
