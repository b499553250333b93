"""`dsmigrate verify` with the real DDP and the real DeepSpeed: agreement, planted faults, resuming, failures."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsmigrate.verify.device import Device
from dsmigrate.verify.job import judge
from dsmigrate.verify.model import Comparison, Run
from dsmigrate.verify.request import Request
from dsmigrate.verify.trial import Scene, Trials

from .cases import Case, case_named
from .conversion import REPOSITORY, convert
from .faults import FAULTS
from .harness import EXAMPLES
from .launching import torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("verify"), pytest.mark.slow]

SCHEMA = json.loads((REPOSITORY / "schemas" / "output" / "verify.schema.json").read_bytes())
SECONDS = 600

PLANTED = (
    ("loss divided once more", "trainer_class", 2, "loss-divided-by-world-size"),
    ("accumulation steps in the config too", "segmentation_accum", 2, "loss-divided-by-accumulation"),
    ("managed accumulation with one step", "segmentation_accum", 2, "managed-accumulation"),
    ("tail window dropped", "segmentation_accum", 2, "accumulation-window"),
    ("gate removed", "segmentation_accum", 2, "accumulation-window"),
    ("zero_grad between backward and step", "trainer_class", 0, "gradient-gone"),
    ("step left on the client optimizer", "trainer_class", 0, "step-beside-the-engine"),
    ("backward on the loss", "trainer_class", 0, "backward-on-the-loss"),
    ("gradient_clipping not written", "trainer_class", 2, "clipping-default"),
    ("clipping lost", "segmentation_accum", 2, "clipping-lost"),
    ("clip taken for 1.0", "warmup_resume", 2, "clipping-limit"),
    ("torch_autocast not enabled", "autocast_ctx-bf16", 2, "precision"),
    ("half-precision weights", "autocast_ctx-bf16", 2, "precision"),
    ("scheduler handed to the engine", "imagenet_resnet", 2, "schedule-too-fast"),
    ("scheduler step removed", "warmup_resume", 2, "schedule-stands-still"),
    ("set_epoch dropped", "trainer_class", 2, "epoch-order"),
    ("weights loaded after initialize", "trainer_class", 2, "weights-changed-late"),
    ("optimizer from the config", "slurm_env-torchrun", 0, "other-optimizer"),
    ("untested optimizer not allowed", "trainer_class", 2, "optimizer-not-allowed"),
    ("save under the rank guard", "warmup_resume", 2, "collective-on-some-ranks"),
)
"""A fault, the example that it is planted in, the ZeRO stage, and the cause that has to be named first."""


class Bench:
    """Runs of one session, with what they share: each original trains once, each conversion is made once."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._originals: dict[str, Run] = {}
        self._conversions: dict[tuple[str, int], Path] = {}
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", training_environment()["TORCH_EXTENSIONS_DIR"])

    def trials(self, timeout: float = 120.0) -> Trials:
        device = Device(cpu=True, pretend=True, why="CPU")
        return Trials(Request(Path("train.py"), timeout=timeout), torch_python(), device, self.place)

    def folder(self, name: str) -> Path:
        found = self.place / f"{len(list(self.place.iterdir())):03d}-{name}"
        found.mkdir()
        return found

    def original(self, case: Case) -> Run:
        if case.name not in self._originals:
            folder = self.folder(case.name)
            shutil.copy(EXAMPLES / case.script, folder)
            self._originals[case.name] = self.trials().run(
                "original", Scene(folder, case.script, folder), arguments=case.argv
            )
        assert self._originals[case.name].is_complete, self._originals[case.name].outcome
        return self._originals[case.name]

    def faulty(self, fault: str, case: Case, stage: int, timeout: float) -> Comparison:
        planted = next(one for one in FAULTS if one.name == fault)
        key = (case.script, stage)
        if key not in self._conversions:
            self._conversions[key] = self.folder(f"{case.example}-zero{stage}")
            convert(EXAMPLES / case.script, stage, self._conversions[key])
        folder = self.folder(f"{case.name}-fault")
        shutil.copytree(self._conversions[key], folder, dirs_exist_ok=True)
        planted.plant(folder, case)
        run = self.trials(timeout).run("converted", Scene(folder, case.script, folder), arguments=case.argv)
        return judge(self.original(case), run)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("verify"))


def verify(folder: Path, *words: str, code: int | None = 0) -> dict[str, Any]:
    """Run the command in ``folder`` and return its JSON."""
    done = command(folder, "--format", "json", *words)
    assert code is None or done.returncode == code, done.stderr[-3000:] + done.stdout[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft7Validator)
    return found


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    split = words.index("--") if "--" in words else len(words)
    own = ["--python", torch_python(), *words[split:]]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "server")}
    environment.setdefault("TORCH_EXTENSIONS_DIR", training_environment()["TORCH_EXTENSIONS_DIR"])
    return subprocess.run(
        [sys.executable, "-m", "dsmigrate", "verify", *words[:split], *own],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def placed(folder: Path, *scripts: str) -> Path:
    for script in scripts:
        shutil.copy(EXAMPLES / script, folder)
    return folder


@pytest.mark.parametrize(
    ("script", "stages", "arguments"),
    [
        ("segmentation_accum.py", "0,1,2,3", ()),
        ("trainer_class.py", "0,3", ("4", "1")),
        ("vit_fp16_scaler.py", "0,2,3", ("--amp",)),
        ("spawn_regression.py", "2", ()),
        ("launch_local_rank.py", "1", ()),
        ("nanogpt.py", "2", ("--dtype=bfloat16",)),
    ],
)
def test_conversions_agree(tmp_path: Path, script: str, stages: str, arguments: tuple[str, ...]) -> None:
    found = verify(placed(tmp_path, script), script, "--zero-stage", stages, "--steps", "10", "--", *arguments)
    assert [one["status"] for one in found["verdicts"]] == ["agrees"] * len(stages.split(","))
    assert len(found["run"]["steps"]) == 10
    for one in found["verdicts"]:
        assert one["run"]["setting"]["kind"] == "deepspeed"
        assert one["run"]["setting"]["zero_stage"] == one["zero_stage"]
        assert len(one["run"]["steps"]) == 10
        assert one["worst"]["weights"] < 1e-2
        assert one["notes"] == []
        assert 0 < one["run"]["overhead_per_step"] < one["run"]["seconds_per_step"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [script]


@pytest.mark.parametrize(("fault", "name", "stage", "cause"), PLANTED, ids=[one[0] for one in PLANTED])
def test_a_planted_fault_is_detected_and_named(bench: Bench, fault: str, name: str, stage: int, cause: str) -> None:
    hangs = fault == "save under the rank guard"
    found = bench.faulty(fault, case_named(name), stage, 25.0 if hangs else 120.0)
    assert not found.agrees
    assert [one.id for one in found.causes][:1] == [cause], (found.differences, found.causes, found.converted.outcome)


@pytest.mark.parametrize("launcher", ["torchrun", "deepspeed"])
def test_launchers_give_the_same(tmp_path: Path, launcher: str) -> None:
    placed(tmp_path, "no_sync_accum.py")
    found = verify(tmp_path, "no_sync_accum.py", "--zero-stage", "2", "--launcher", launcher, "--steps", "6")
    assert found["run"]["command"].startswith(launcher)
    assert len(found["verdicts"][0]["run"]["steps"]) == 6


def test_a_resumed_run_goes_on(tmp_path: Path) -> None:
    placed(tmp_path, "warmup_resume.py")
    words = ("--zero-stage", "2", "--resume-args", "--resume checkpoints/last.pt")
    found = verify(tmp_path, "warmup_resume.py", *words)
    assert found["resumed"]["agrees"]
    verdict = found["verdicts"][0]
    assert verdict["resumed"]["agrees"]
    assert verdict["resumed"]["stopped_after"] >= len(verdict["run"]["steps"]) // 2
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("isfile kept", "starts-from-scratch"),
        ("optimizer state lost", "optimizer-not-restored"),
        ("scheduler state lost", "schedule-not-restored"),
    ],
)
def test_a_bad_restart_is_named(tmp_path: Path, fault: str, cause: str) -> None:
    placed(tmp_path, "warmup_resume.py")
    convert(tmp_path / "warmup_resume.py", 2, tmp_path / "out")
    next(one for one in FAULTS if one.name == fault).plant(tmp_path / "out", case_named("warmup_resume"))
    words = ("warmup_resume.py", "out/warmup_resume.py", "--resume-args", "--resume checkpoints/last.pt")
    verdict = verify(tmp_path, *words, code=1)["verdicts"][0]
    assert verdict["status"] == "agrees"
    assert not verdict["resumed"]["agrees"]
    assert [one["id"] for one in verdict["resumed"]["causes"]] == [cause]


def test_what_the_scripts_write_stays_in_the_copies(tmp_path: Path) -> None:
    """A checkpoint of a real run must survive, although both scripts save to its place (and DeepSpeed fails there)."""
    placed(tmp_path, "warmup_resume.py")
    (tmp_path / "checkpoints").mkdir()
    precious = os.urandom(1 << 19)
    (tmp_path / "checkpoints" / "last.pt").write_bytes(precious)
    verify(tmp_path, "warmup_resume.py", "--zero-stage", "1", "--steps", "8", code=None)
    assert (tmp_path / "checkpoints" / "last.pt").read_bytes() == precious


CUDA_ONLY = """
import os
import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

assert torch.cuda.is_available(), "this needs a GPU"
os.environ["MASTER_PORT"] = "29511"
dist.init_process_group("nccl", init_method="env://")
rank = dist.get_rank()
local_rank = rank % torch.cuda.device_count()
torch.cuda.set_device(local_rank)
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
model = DDP(model, device_ids=[local_rank], output_device=local_rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
stream, started, ended = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
data = torch.Generator().manual_seed(rank)
for step in range(6):
    started.record()
    x = torch.randn(8, 8, generator=data).pin_memory().cuda(non_blocking=True)
    with torch.cuda.stream(stream):
        y = torch.randint(0, 4, (8,), generator=data).to(rank, non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    weight = torch.ones(4, device=f"cuda:{local_rank}") * torch.zeros(1, device=torch.device("cuda", local_rank)).exp()
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x).float(), y, weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ended.record()
    torch.cuda.synchronize()
    print(step, loss.item(), torch.cuda.max_memory_allocated(), torch.cuda.get_device_name(0))
    assert started.elapsed_time(ended) > 0
"""


def test_a_script_for_cuda_alone_is_verified_without_it(tmp_path: Path) -> None:
    """And at a port of its own, although another program listens where the script wants to meet."""
    (tmp_path / "train.py").write_text(CUDA_ONLY)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 29511))
            taken.listen()
        except OSError:
            pass  # somebody else listens there, which is as good
        found = verify(tmp_path, "train.py", "--zero-stage", "2")
    assert found["verdicts"][0]["status"] == "agrees"
    assert found["verdicts"][0]["precision"] == "mixed precision"
    assert len(found["run"]["steps"]) == 6


def test_an_original_that_fails_is_said_with_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nprint('before')\nraise ValueError('no data here')\n")
    done = command(tmp_path, "train.py", "train.py")
    assert done.returncode == 2
    assert "the original itself fails" in done.stderr
    assert "train.py:3: ValueError: no data here" in done.stderr
    assert "before" in done.stderr


def test_an_original_that_does_not_train_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nprint('usage: train.py DATA')\n")
    done = command(tmp_path, "train.py", "train.py")
    assert done.returncode == 2
    assert "ended without an optimizer step" in done.stderr
    assert "usage: train.py DATA" in done.stderr


def test_a_script_that_is_refused_is_said_with_the_reason(tmp_path: Path) -> None:
    text = (EXAMPLES / "trainer_class.py").read_text().replace("optimizer.step()", "optimizer.step(lambda: 0.0)")
    (tmp_path / "train.py").write_text(text)
    done = command(tmp_path, "train.py", "--steps", "2", "--", "4", "1")
    assert done.returncode == 2
    assert "train.py is refused" in done.stderr or "the original itself fails" in done.stderr


def test_a_hanging_conversion_ends_in_its_time_and_leaves_nothing(tmp_path: Path) -> None:
    placed(tmp_path, "trainer_class.py")
    hanging = (
        (EXAMPLES / "trainer_class.py")
        .read_text()
        .replace("import torch\n", "import time\nimport torch\ntime.sleep(3600)\n", 1)
    )
    (tmp_path / "hangs.py").write_text(hanging)
    start = time.monotonic()
    found = verify(tmp_path, "trainer_class.py", "hangs.py", "--timeout", "60", "--steps", "3", "--", "4", "1", code=1)
    assert time.monotonic() - start < 180
    assert found["verdicts"][0]["status"] == "timed_out"
    assert any("hangs.py:" in stack for stack in found["verdicts"][0]["run"]["stacks"])
    listing = subprocess.run(["ps", "-A", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert "hangs.py" not in listing
