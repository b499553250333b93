"""What `dsmigrate verify` says of faults, alone and in pairs, of scripts that do not repeat themselves, of failures.

    python -m tests.benchmarks.verify_table [--only TEXT] [--time]

Faults of ``tests/e2e/faults.py`` are planted in converted examples, which are trained beside their originals with the
real DDP and the real DeepSpeed; all causes have to be named. ``--time`` prints what a verdict takes as a multiple of
the original's own run, without the harness. Exits with 1 where something is not said.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from dsmigrate.verify import launching, running
from dsmigrate.verify.formats import text, words
from dsmigrate.verify.job import verify
from dsmigrate.verify.model import VerifyError
from dsmigrate.verify.request import Request
from tests.e2e.cases import case_named
from tests.e2e.harness import EXAMPLES
from tests.e2e.launching import torch_python
from tests.e2e.verify_bench import Bench
from tests.e2e.verify_scripts import BRANCHES, FAILURES, NOISES, PLAIN, RESUMES_NOTHING, TRAINING
from tests.e2e.warm_start import warm

Planted = tuple[tuple[str, ...], str, int, tuple[str, ...]]

FAULTS: tuple[Planted, ...] = (
    (("loss divided once more",), "trainer_class", 2, ("loss-divided-by-world-size",)),
    (("accumulation steps in the config too",), "segmentation_accum", 2, ("loss-divided-by-accumulation",)),
    (("managed accumulation with one step",), "segmentation_accum", 2, ("managed-accumulation",)),
    (("zero_grad between backward and step",), "trainer_class", 0, ("gradient-gone",)),
    (("step left on the client optimizer",), "trainer_class", 0, ("step-beside-the-engine",)),
    (("clip taken for 1.0",), "warmup_resume", 2, ("clipping-limit",)),
    (("half-precision weights",), "autocast_ctx-bf16", 2, ("precision",)),
    (("scheduler handed to the engine",), "imagenet_resnet", 2, ("schedule-too-fast",)),
    (("weights loaded after initialize",), "trainer_class", 2, ("weights-changed-late",)),
    (("optimizer from the config",), "slurm_env-torchrun", 0, ("other-optimizer",)),
    (
        ("loss divided once more", "gradient_clipping not written"),
        "trainer_class", 2, ("loss-divided-by-world-size", "clipping-default"),
    ),
    (
        ("set_epoch dropped", "loss divided once more"),
        "trainer_class", 2, ("loss-divided-by-world-size", "epoch-order"),
    ),
    (
        ("weights loaded after initialize", "gradient_clipping not written"),
        "trainer_class", 2, ("weights-changed-late", "clipping-default"),
    ),
    (
        ("scheduler step removed", "clip taken for 1.0"),
        "warmup_resume", 2, ("schedule-stands-still", "clipping-limit"),
    ),
    (
        ("scheduler handed to the engine", "loss divided once more"),
        "imagenet_resnet", 2, ("schedule-too-fast", "loss-divided-by-world-size"),
    ),
    (("gate removed", "clipping lost"), "segmentation_accum", 2, ("accumulation-window", "clipping-lost")),
    (
        ("tail window dropped", "scheduler step removed"),
        "segmentation_accum", 2, ("accumulation-window", "schedule-stands-still"),
    ),
    (
        ("torch_autocast not enabled", "loss divided once more"),
        "autocast_ctx-bf16", 2, ("precision", "loss-divided-by-world-size"),
    ),
    (
        ("an argument of the optimizer lost", "set_epoch dropped"),
        "trainer_class", 2, ("optimizer-settings", "epoch-order"),
    ),
    (
        ("managed accumulation with one step", "clipping lost"),
        "segmentation_accum", 2, ("managed-accumulation", "clipping-lost"),
    ),
)  # fmt: skip
"""Faults, the example that they are planted in, the ZeRO stage, and the causes that have to be named."""


def main() -> int:
    """Print the table; 1 where a cause is not named."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.verify_table")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "bench").mkdir()
        if asked.time:
            _time(folder)
            return 0
        missed = 0
        with warm(folder):
            bench = Bench(folder / "bench")
            for name, judged in _rows(bench, folder):
                if asked.only in name:
                    is_good, said = judged()
                    missed += not is_good
                    print(f"{'' if is_good else 'MISSED  '}{name}\n    {said}", flush=True)
        os.chdir(before)
    print(f"{missed} missed")
    return int(bool(missed))


Judged = Callable[[], tuple[bool, str]]


def _rows(bench: Bench, folder: Path) -> Iterator[tuple[str, Judged]]:
    for faults, name, stage, causes in FAULTS:
        yield f"fault: {' + '.join(faults)} ({name})", partial(_fault, bench, faults, name, stage, causes)
    for name, script in BRANCHES.items():
        yield f"branch: {name}", partial(_said, folder, script, 1, (name,))
    for name, changes in NOISES.items():
        script = TRAINING.format(**{**PLAIN, **changes})
        yield f"noise: {name}", partial(_said, folder, script, 2, ("the original does not repeat itself",))
    for name, (script, code, wanted) in FAILURES.items():
        yield f"failure: {name}", partial(_said, folder, script, code, wanted)
    read_nothing = partial(_said, folder, RESUMES_NOTHING, 2, ("reads no checkpoint",), resume=("--go",))
    yield "resume that reads nothing", read_nothing


def _fault(bench: Bench, faults: tuple[str, ...], name: str, stage: int, wanted: tuple[str, ...]) -> tuple[bool, str]:
    found = bench.faulty(faults, case_named(name), stage)
    named = [cause.id for cause in found.causes]
    is_good = not found.agrees and not found.is_noise and set(wanted) <= set(named)
    return is_good, f"{', '.join(named)}; wanted {', '.join(wanted)}; {words.headline(found)}"


def _said(
    folder: Path, script: str, code: int, wanted: tuple[str, ...], resume: tuple[str, ...] | None = None
) -> tuple[bool, str]:
    """Verify a script beside its conversion; return whether all of ``wanted`` is said, with the exit code."""
    place = Path(tempfile.mkdtemp(dir=folder)) / "project"
    place.mkdir()
    (place / "train.py").write_text(script)
    os.chdir(place)
    converted = None
    if "# CONVERTED" in script:  # what comes after it stands for the conversion
        one, _, other = script.partition("# CONVERTED")
        (place / "train.py").write_text(one)
        (place / "converted.py").write_text(other)
        converted = Path("converted.py")
    request = Request(
        Path("train.py"), converted, python=torch_python(), device="pretend", stages=(2,), steps=8, resume=resume
    )
    try:
        found = verify(request, lambda _: None)
        said = "\n".join(words.plain(text.render(found)))
        given = 0 if found.agrees else 2 if found.is_open else 1
    except VerifyError as error:
        said, given = str(error), 2
    shown = "\n    ".join(said.splitlines()[:14])
    return given == code and all(one in said for one in wanted), f"exit code {given}: {shown}"


def _time(folder: Path) -> None:
    """Print what a verdict takes beside the original's own run."""
    script = "segmentation_accum.py"
    shutil.copy(EXAMPLES / script, folder)
    os.chdir(folder)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    source = (folder / script).read_text()
    own, whole = [], []
    for _ in range(2):
        with launching.reserved_port() as port:
            plan = launching.plan(
                python=torch_python(), script=script, arguments=(), kind="ranks", processes=2, port=port,
                environment=environment, source=source,
            )  # fmt: skip
            logs = Path(tempfile.mkdtemp(dir=folder))
            own.append(running.run(plan, folder=folder, logs=logs, timeout=600, has_ended=lambda: False).seconds)
        begun = time.monotonic()
        request = Request(Path(script), python=torch_python(), stages=(2,), steps=1000)
        found = verify(replace(request, device="pretend"), lambda _: None)
        assert found.agrees, found
        whole.append(time.monotonic() - begun)
    print(f"own run {min(own):.1f} s, verdict {min(whole):.1f} s: {min(whole) / min(own):.2f} times")


if __name__ == "__main__":
    sys.exit(main())
