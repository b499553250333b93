"""`dsmigrate verify` with the real DDP and the real DeepSpeed: agreement, planted faults, resuming, failures."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsmigrate.verify import running
from dsmigrate.verify.formats import json as as_json
from dsmigrate.verify.job import verify as verify_request
from dsmigrate.verify.model import Ending, Run, VerifyError
from dsmigrate.verify.request import Request
from dsmigrate.verify.resume import continuation
from dsmigrate.verify.trial import Scene
from tests.support.events import Clock, until

from .cases import case_named
from .conversion import REPOSITORY, convert
from .faults import FAULTS
from .harness import EXAMPLES
from .launching import torch_python, training_environment
from .verify_bench import SECONDS, Bench
from .verify_scripts import (
    BARE,
    BRANCHES,
    CUDA_ONLY,
    FAILURES,
    HANGING,
    NOISES,
    PLAIN,
    RESUMES_NOTHING,
    SHARED,
    SPAWNING,
    TRAINING,
)
from .warm_start import warm

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("verify"), pytest.mark.slow]

SCHEMA = json.loads((REPOSITORY / "schemas" / "output" / "verify.schema.json").read_bytes())

PLANTED = (
    (
        ("loss divided once more", "gradient_clipping not written"),
        "trainer_class",
        2,
        ("loss-divided-by-world-size", "clipping-default"),
    ),
    (
        ("weights loaded after initialize", "set_epoch dropped"),
        "trainer_class",
        2,
        ("weights-changed-late", "epoch-order"),
    ),
    (("zero_grad between backward and step",), "trainer_class", 0, ("gradient-gone",)),
    (("backward on the loss",), "trainer_class", 0, ("backward-on-the-loss",)),
    (("tail window dropped", "clipping lost"), "segmentation_accum", 2, ("accumulation-window", "clipping-lost")),
    (("managed accumulation with one step",), "segmentation_accum", 2, ("managed-accumulation",)),
    (("half-precision weights",), "autocast_ctx-bf16", 2, ("precision",)),
    (("gathered under the rank guard",), "warmup_resume", 2, ("collective-on-some-ranks",)),
)
"""Faults, the example that they are planted in, the ZeRO stage, and the causes that have to be named.

``tests.benchmarks.verify_table`` has more of them: what is said of other records is tried without training.
"""


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with warm(tmp_path_factory.mktemp("warm")):
        yield Bench(tmp_path_factory.mktemp("verify"))


@pytest.fixture
def here(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001 - its warm start
    """An empty folder to be in, with processes that start warm."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verified(script: str, *arguments: str, **more: Any) -> dict[str, Any]:
    """Verify in this process, whose children start warm, and return the JSON."""
    request = Request(Path(script), arguments=arguments, **{"python": torch_python(), "device": "pretend", **more})
    found: dict[str, Any] = json.loads(as_json.render(verify_request(request, lambda _: None)))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft7Validator)
    return found


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
    training = training_environment()
    paths = os.pathsep.join([str(REPOSITORY / "server"), training["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": paths, "TORCH_EXTENSIONS_DIR": training["TORCH_EXTENSIONS_DIR"]}
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


def test_a_conversion_agrees_from_the_command_line(tmp_path: Path) -> None:
    found = verify(
        placed(tmp_path, "segmentation_accum.py"), "segmentation_accum.py", "--zero-stage", "0,3", "--steps", "10"
    )
    check_agreement(found, (0, 3), 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["segmentation_accum.py"]


@pytest.mark.parametrize(
    ("script", "stages", "arguments"),
    [
        ("segmentation_accum.py", (1, 2), ()),
        ("trainer_class.py", (3,), ("4", "1")),
        ("vit_fp16_scaler.py", (0, 2, 3), ("--amp",)),
        ("spawn_regression.py", (2,), ()),
        ("launch_local_rank.py", (1,), ()),
        ("nanogpt.py", (2,), ("--dtype=bfloat16",)),
    ],
)
def test_conversions_agree(here: Path, script: str, stages: tuple[int, ...], arguments: tuple[str, ...]) -> None:
    placed(here, script)
    check_agreement(verified(script, *arguments, stages=stages, steps=10), stages, 10)
    assert sorted(path.name for path in here.iterdir()) == [script]


def check_agreement(found: dict[str, Any], stages: tuple[int, ...], steps: int) -> None:
    assert [(one["zero_stage"], one["status"]) for one in found["verdicts"]] == [(stage, "agrees") for stage in stages]
    assert len(found["run"]["steps"]) == steps
    for one in found["verdicts"]:
        assert one["run"]["setting"]["kind"] == "deepspeed"
        assert one["run"]["setting"]["zero_stage"] == one["zero_stage"]
        assert len(one["run"]["steps"]) == steps
        assert one["worst"]["weights"] < 1e-2
        assert one["notes"] == []
        assert 0 < one["run"]["overhead_per_step"] < one["run"]["seconds_per_step"]


@pytest.mark.parametrize(("faults", "name", "stage", "causes"), PLANTED, ids=[" and ".join(one[0]) for one in PLANTED])
def test_planted_faults_are_detected_and_named(  # noqa: PLR0917 - the parameters of one case
    bench: Bench,
    faults: tuple[str, ...],
    name: str,
    stage: int,
    causes: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "STILL_SECONDS", 5.0)
    monkeypatch.setattr(running, "BETWEEN_LOOKS_SECONDS", 2.0)
    found = bench.faulty(faults, case_named(name), stage)
    assert not found.agrees
    assert not found.is_noise
    assert {one.id for one in found.causes} == set(causes), (found.differences, found.causes, found.converted.outcome)


@pytest.mark.parametrize("launcher", ["torchrun", "deepspeed"])
def test_launchers_give_the_same(tmp_path: Path, launcher: str) -> None:
    placed(tmp_path, "no_sync_accum.py")
    found = verify(tmp_path, "no_sync_accum.py", "--zero-stage", "2", "--launcher", launcher, "--steps", "6")
    assert found["run"]["command"].startswith(launcher)
    assert len(found["verdicts"][0]["run"]["steps"]) == 6


def test_a_resumed_run_goes_on(here: Path) -> None:
    placed(here, "warmup_resume.py")
    found = verified("warmup_resume.py", stages=(2,), resume=("--resume", "checkpoints/last.pt"))
    assert found["resumed"]["agrees"]
    verdict = found["verdicts"][0]
    assert verdict["resumed"]["agrees"]
    assert verdict["resumed"]["stopped_after"] >= len(verdict["run"]["steps"]) // 2
    assert not (here / "checkpoints").exists()


@pytest.fixture(scope="session")
def stopped(bench: Bench) -> tuple[Run, Run, Path]:
    """A conversion that has run to its end, its first half, and the folder in which that has left its checkpoint."""
    made = bench.folder("warmup_resume")
    convert([EXAMPLES / "warmup_resume.py"], 2, made)
    trials, runs, folder = bench.trials(script="warmup_resume.py"), [], made
    for save_after in (None, 12):
        folder = bench.folder("resuming")
        shutil.copytree(made, folder, dirs_exist_ok=True)
        scene = Scene(folder, "warmup_resume.py", folder)
        runs.append(trials.run("converted", scene, arguments=(), save_after=save_after))
    assert all(run.is_complete for run in runs), [run.outcome for run in runs]
    return runs[0], runs[1], folder


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("checkpoint looked for as a folder", "starts-from-scratch"),
        ("optimizer state lost", "optimizer-not-restored"),
        ("scheduler state lost", "schedule-not-restored"),
    ],
)
def test_a_bad_restart_is_named(bench: Bench, stopped: tuple[Run, Run, Path], fault: str, cause: str) -> None:
    whole, half, left = stopped
    folder = bench.folder("restart")
    shutil.copytree(left, folder, dirs_exist_ok=True)
    next(one for one in FAULTS if one.name == fault).plant(folder, case_named("warmup_resume"))
    second = bench.trials(script="warmup_resume.py").run(
        "converted, resumed",
        Scene(folder, "warmup_resume.py", folder),
        arguments=("--resume", "checkpoints/last.pt"),
        steps=len(whole.steps) - len(half.steps),
    )
    assert second.is_complete, second.outcome
    found = continuation(whole, second, len(half.steps), 1.0)
    assert not found.agrees
    assert [one.id for one in found.causes] == [cause]


def test_what_the_scripts_write_stays_in_the_copies(here: Path) -> None:
    """A checkpoint of a real run must survive, although both scripts save to its place (and DeepSpeed fails there)."""
    placed(here, "warmup_resume.py")
    (here / "checkpoints").mkdir()
    precious = os.urandom(1 << 19)
    (here / "checkpoints" / "last.pt").write_bytes(precious)
    verified("warmup_resume.py", stages=(1,), steps=8)
    assert (here / "checkpoints" / "last.pt").read_bytes() == precious


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
    assert "ValueError: no data here at " in done.stderr
    assert "before" in done.stderr


def test_an_error_in_a_spawned_process_is_said(here: Path) -> None:
    (here / "train.py").write_text(SPAWNING)
    with pytest.raises(
        VerifyError,
        match=r"the original itself fails after 0 optimizer steps.*ValueError: no data for . at .*train\.py:6",
    ):
        verified("train.py", converted=Path("train.py"), steps=2)


def test_an_original_that_does_not_repeat_itself_is_said(here: Path) -> None:
    (here / "train.py").write_text(TRAINING.format(**{**PLAIN, **NOISES["numpy without a seed"]}))
    found = verified("train.py", stages=(2,), steps=4)
    (verdict,) = found["verdicts"]
    assert (verdict["status"], verdict["causes"]) == ("unrepeatable", [])
    assert not found["agrees"]
    assert verdict["noise"]["reason"].startswith("other inputs go into the model from step 1 on")


def test_a_branch_that_depends_on_the_data_is_named(here: Path) -> None:
    (here / "train.py").write_text(BRANCHES["data-dependent-branch"])
    (verdict,) = verified("train.py", stages=(2,), steps=4)["verdicts"]
    assert verdict["causes"][0]["id"] == "data-dependent-branch"
    assert verdict["noise"]["repeats"]


def test_a_resume_that_reads_nothing_is_no_agreement(here: Path) -> None:
    (here / "train.py").write_text(RESUMES_NOTHING)
    found = verified("train.py", stages=(2,), steps=6, resume=("--go",))
    assert not found["agrees"]
    assert not found["resumed"]["agrees"]
    assert [cause["id"] for cause in found["resumed"]["causes"]] == ["nothing-read", "starts-from-scratch"]


def test_the_rank_that_is_killed_is_the_headline_and_not_the_one_that_misses_it(here: Path) -> None:
    original, _, conversion = FAILURES["rank 1 is killed"][0].partition("# CONVERTED")
    (here / "train.py").write_text(original)
    (here / "converted.py").write_text(conversion)
    (verdict,) = verified("train.py", converted=Path("converted.py"), stages=(2,))["verdicts"]
    assert "rank 1 first: it is killed by SIGKILL" in verdict["message"]
    assert verdict["run"]["crash"]["rank"] == "1"


def test_an_original_that_does_not_train_is_said(here: Path) -> None:
    (here / "train.py").write_text("import torch\nprint('usage: train.py DATA')\n")
    with pytest.raises(VerifyError, match="ended without an optimizer step") as error:
        verified("train.py", converted=Path("train.py"), keep=True)
    assert "usage: train.py DATA" in str(error.value)
    kept = Path(str(error.value).rpartition("records, output and copies: ")[2])
    assert "usage: train.py DATA" in (kept / "run00-original" / "process0.txt").read_text()
    shutil.rmtree(kept)


def test_a_script_that_is_refused_is_said_with_the_reason(here: Path) -> None:
    text = (EXAMPLES / "trainer_class.py").read_text()
    step = "self.optimizer.step() if self.gpu_id < 2 else self.optimizer.step(lambda: 0.0)"
    assert "self.optimizer.step()" in text
    (here / "train.py").write_text(text.replace("self.optimizer.step()", step))
    with pytest.raises(VerifyError, match=r"train\.py is refused.*closure"):
        verified("train.py", "4", "1", steps=2)


def test_a_model_that_is_handed_to_spawned_processes_is_one_for_each(here: Path) -> None:
    (here / "train.py").write_text(SHARED)
    check_agreement(verified("train.py", stages=(1,)), (1,), 4)


def test_one_process_may_train_without_a_wrapper(here: Path) -> None:
    (here / "train.py").write_text(BARE)
    found = verified("train.py", processes=1, stages=(2,))
    check_agreement(found, (2,), 8)
    assert [step["samples"] for step in found["run"]["steps"]] == [6] * 8


def test_a_script_that_trains_without_an_engine_is_no_conversion(here: Path) -> None:
    placed(here, "trainer_class.py")
    verdict = verified("trainer_class.py", "4", "1", converted=Path("trainer_class.py"), steps=2)["verdicts"][0]
    assert (verdict["status"], verdict["causes"][0]["id"]) == ("parts", "no-engine")


def test_a_hanging_script_ends_in_its_time_and_leaves_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes start cold, as those of srun do here: who descends from whom is what is tried."""

    def has_said_where_it_stands() -> bool:
        return any("hangs.py" in file.read_text() for file in bench.place.rglob("stack-*.txt"))

    def hang() -> bool:
        return len(list(tmp_path.glob("*.pid"))) == 2

    mark = f"left by {tmp_path}"
    (tmp_path / "hangs.py").write_text(HANGING.format(mark=mark))
    monkeypatch.setattr(running, "time", Clock(hang, then=has_said_where_it_stands))
    run = bench.trials(launcher="srun").run("converted", Scene(tmp_path, "hangs.py", tmp_path), arguments=())
    assert run.outcome.ending is Ending.TIMED_OUT
    assert any("hangs.py:4 in <module>" in stack for stack in run.outcome.stacks)

    def listing() -> str:
        return subprocess.run(["ps", "-A", "-ww", "-o", "args"], capture_output=True, text=True, check=True).stdout

    until(lambda: mark not in listing(), "the end of all processes")
