"""Trains an example under DDP and its conversion under DeepSpeed, and says whether they agree.

Settings come from the environment:

``DSMIGRATE_TORCH_PYTHON``
    the interpreter that has torch and deepspeed; this one by default. Without them the tests fail.
``DSMIGRATE_E2E_STAGES``
    the ZeRO stages to try, ``0,1,2,3`` by default.
``DSMIGRATE_E2E_CONVERTED``
    a folder with finished conversions, one sub-folder per example with the changed files and ``ds_config.json``, which
    are tested instead of what the tool makes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cases import Case
from .readings import Comparison, Reading, Tolerance, compare, joined, read

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
EXAMPLES = REPOSITORY / "examples"
RANKS = 2
CONFIG_NAME = "ds_config.json"
TIMEOUT_SECONDS = 60.0
ABORTED = -signal.SIGABRT

FULL = Tolerance(first=1e-6, loss=1e-5, norm=1e-4, lr=1e-7)
HALF = Tolerance(first=1e-6, loss=2e-3, norm=1e-2, lr=1e-7)
"""Sums over ranks are taken in another order, which rounding in half precision makes visible after some steps."""

HALF_AT_ZERO_3 = Tolerance(first=2e-3, loss=5e-3, norm=2e-2, lr=1e-7)
"""``memory_efficient_linear``, on by default at ZeRO 3, rounds a product before it adds the bias. With the key set to
false the first loss is exact there too (DeepSpeed 0.19.8)."""

WEIGHTS_FACTOR = 10.0
"""How much farther apart weights may be than losses."""

STARTS_ITS_OWN_PROCESSES = re.compile(r"\bmp\.spawn\(")
"""Such a script is run by itself; a conversion is free to leave that to the launcher."""

Edit = Callable[[Path], None]


def stages() -> tuple[int, ...]:
    """The ZeRO stages that this session tries."""
    return tuple(int(stage) for stage in os.environ.get("DSMIGRATE_E2E_STAGES", "0,1,2,3").split(","))


def torch_python() -> str:
    """The interpreter that runs the training scripts."""
    return os.environ.get("DSMIGRATE_TORCH_PYTHON", sys.executable)


def training_environment() -> dict[str, str]:
    """The environment of every training process: CPU only, one thread, compiled extensions kept between sessions."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dsmigrate" / "torch_extensions"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TORCHELASTIC"))}
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        environment.pop(name, None)
    environment |= {
        "CUDA_VISIBLE_DEVICES": "",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(torch_python()).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(HERE / "site"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore::FutureWarning",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    environment.setdefault("TORCH_EXTENSIONS_DIR", str(cache))
    return environment


def free_port() -> int:
    """A TCP port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tolerance(case: Case, stage: int) -> Tolerance:
    """What a conversion may differ by at a ZeRO stage."""
    if case.precision == "fp32":
        return FULL
    return HALF_AT_ZERO_3 if stage == 3 else HALF


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run did: exit codes per rank, the text of each rank, and where it ran."""

    returncodes: tuple[int, ...]
    timed_out: bool
    texts: tuple[str, ...]
    folder: Path
    seconds: float

    @property
    def aborted(self) -> bool:
        """Whether a process was ended by SIGABRT, as gloo does now and then at interpreter exit."""
        return ABORTED in self.returncodes or any("SIGABRT" in text for text in self.texts)

    @property
    def succeeded(self) -> bool:
        """Whether it ended well. An abort at exit is not held against a run: what it printed decides."""
        return not self.timed_out and (self.aborted or not any(self.returncodes))

    @property
    def readings(self) -> tuple[Reading, ...]:
        return read(self.texts[0])

    def excerpt(self, characters: int = 3000) -> str:
        """The end of what each rank printed."""
        parts = [f"exit codes {self.returncodes}{', timed out' if self.timed_out else ''}, in {self.folder}"]
        parts += [f"--- rank {rank}\n{text[-characters:]}" for rank, text in enumerate(self.texts)]
        return "\n".join(parts)


class Worker:
    """A warm process (`runner.py`) that forks the ranks of one job after the other."""

    def __init__(self, flavour: str) -> None:
        self._process = subprocess.Popen(
            [torch_python(), str(HERE / "runner.py"), flavour],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=training_environment(),
            text=True,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise RuntimeError(
                f"{torch_python()} cannot run the training scripts (exit code {code}): it needs torch and deepspeed. "
                "Set DSMIGRATE_TORCH_PYTHON to an interpreter that has them."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)


def _rank_environment(case: Case, rank: int, port: int) -> dict[str, str]:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if case.launch == "slurm":
        return place | {
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_NTASKS": str(RANKS),
            "SLURM_NODELIST": "localhost",
        }
    return place | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "GROUP_RANK": "0",
    }


def launch_cold(command: Sequence[str], folder: Path, timeout: float = TIMEOUT_SECONDS) -> Outcome:
    """Run a launcher of its own, as a person would type it; its output is taken for that of rank 0."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=training_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    timed_out = False
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
    return Outcome((process.returncode,), timed_out, (text,), folder, time.monotonic() - start)


class ConversionError(AssertionError):
    """The tool did not convert an example."""


class Lab:
    """Everything one session shares: the warm processes, the original runs and the conversions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: dict[str, Worker] = {}
        self._originals: dict[str, Outcome] = {}
        self._conversions: dict[tuple[str, int], Path] = {}
        self._verdicts: dict[tuple[str, int], Verdict] = {}
        self._count = 0

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _new_folder(self, name: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count:04d}-{name}"

    def _worker(self, flavour: str) -> Worker:
        if flavour not in self._workers:
            self._workers[flavour] = Worker(flavour)
        return self._workers[flavour]

    def launch(
        self, case: Case, folder: Path, argv: Sequence[str], flavour: str, timeout: float = TIMEOUT_SECONDS
    ) -> Outcome:
        """Run the script of a case that lies in ``folder``, there. An abort at exit is tried a second time."""
        outcome = self._launch_once(case, folder, argv, flavour, timeout)
        if outcome.aborted:
            outcome = self._launch_once(case, folder, argv, flavour, timeout)
        return outcome

    def _launch_once(self, case: Case, folder: Path, argv: Sequence[str], flavour: str, timeout: float) -> Outcome:
        script = folder / Path(case.script).name
        if STARTS_ITS_OWN_PROCESSES.search(script.read_text()):
            return launch_cold([torch_python(), str(script), *argv], folder, timeout)
        output = self._new_folder("output")
        output.mkdir(parents=True)
        port = free_port()
        answer = self._worker(flavour).run(
            {
                "script": str(script),
                "argv": [[argument.format(rank=rank) for argument in argv] for rank in range(RANKS)],
                "env": [_rank_environment(case, rank, port) for rank in range(RANKS)],
                "cwd": str(folder),
                "output": str(output),
                "timeout": timeout,
            }
        )
        texts = tuple((output / f"rank{rank}.txt").read_text(errors="replace") for rank in range(RANKS))
        return Outcome(tuple(answer["returncodes"]), answer["timed_out"], texts, folder, answer["seconds"])

    def place(self, case: Case, name: str, changed: Path | None = None) -> Path:
        """A fresh folder with the example, and over it the files that the conversion changed."""
        folder = self._new_folder(name)
        source = EXAMPLES / case.script
        if case.is_folder:
            shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True)
            shutil.copy(source, folder)
        if changed is not None:
            shutil.copytree(changed, folder, dirs_exist_ok=True)
        if case.weights is not None:
            shutil.copy(self._pretrained(case), folder / "pretrained.pt")
        return folder

    def _pretrained(self, case: Case) -> Path:
        assert case.weights is not None
        argv, produced = case.weights
        plain = Case(f"{case.name}-weights", case.script, argv=argv)
        return self.original(plain).folder / produced

    def original(self, case: Case) -> Outcome:
        """The uninterrupted run of the example as it is, under DDP; run once per session."""
        if case.name not in self._originals:
            folder = self.place(case, f"{case.name}-ddp")
            outcome = self.launch(case, folder, case.argv, "torch")
            assert outcome.succeeded, f"the original does not run\n{outcome.excerpt()}"
            assert outcome.readings, f"the original prints no loss\n{outcome.excerpt()}"
            self._originals[case.name] = outcome
        return self._originals[case.name]

    def original_in_halves(self, case: Case) -> tuple[Reading, ...]:
        """What the example prints under DDP when it is stopped half way and resumed."""
        assert case.halves is not None
        folder = self.place(case, f"{case.name}-ddp-halves")
        outcomes = [self.launch(case, folder, argv, "torch") for argv in case.halves]
        for outcome in outcomes:
            assert outcome.succeeded, outcome.excerpt()
        return joined(outcomes[0].readings, outcomes[1].readings)

    def conversion(self, case: Case, stage: int) -> Path:
        """A folder with the files that the tool changed for a ZeRO stage, its config made fit for small models."""
        key = (case.script, stage)
        if key not in self._conversions:
            folder = self._new_folder(f"{case.example}-zero{stage}")
            finished = os.environ.get("DSMIGRATE_E2E_CONVERTED")
            if finished:
                shutil.copytree(Path(finished) / case.example, folder)
                adapt_config(folder / CONFIG_NAME, stage, choose_stage=True)
            else:
                convert(EXAMPLES / case.script, stage, folder)
                adapt_config(folder / CONFIG_NAME, stage, choose_stage=False)
            self._conversions[key] = folder
        return self._conversions[key]

    def verdict(self, case: Case, stage: int) -> Verdict:
        """The comparison of the conversion as it is; made once per session."""
        key = (case.name, stage)
        if key not in self._verdicts:
            self._verdicts[key] = self.converted(case, stage)
        return self._verdicts[key]

    def converted(self, case: Case, stage: int, edit: Edit | None = None, timeout: float = TIMEOUT_SECONDS) -> Verdict:
        """Train the conversion and compare. ``edit`` may change the placed files before they are run."""
        reference = self.original(case)
        folder = self.place(case, f"{case.name}-zero{stage}-run", self.conversion(case, stage))
        if edit is not None:
            edit(folder)
        outcomes = []
        for argv in case.halves or (case.argv,):
            outcomes.append(self.launch(case, folder, argv, "deepspeed", timeout))
            if not outcomes[-1].succeeded:
                return Verdict(None, (), outcomes[-1])
        readings = outcomes[0].readings
        if case.halves:
            readings = joined(readings, outcomes[1].readings)
        allowed = tolerance(case, stage)
        result = compare(reference.readings, readings, allowed)
        return Verdict(
            result, self._compare_exports(case, reference.folder, folder, WEIGHTS_FACTOR * allowed.loss), outcomes[-1]
        )

    def _compare_exports(self, case: Case, before: Path, after: Path, limit: float) -> tuple[str, ...]:
        if not case.exports:
            return ()
        missing = [name for name in case.exports if not (after / name).is_file()]
        if missing:
            return tuple(f"{name}: not written" for name in missing)
        folder = self._new_folder("exports")
        folder.mkdir(parents=True)
        shutil.copy(HERE / "compare_weights.py", folder)
        pairs = [str(root / name) for name in case.exports for root in (before, after)]
        output = self._new_folder("output")
        output.mkdir(parents=True)
        answer = self._worker("torch").run(
            {
                "script": str(folder / "compare_weights.py"),
                "argv": [pairs],
                "env": [{}],
                "cwd": str(folder),
                "output": str(output),
                "timeout": TIMEOUT_SECONDS,
            }
        )
        text = (output / "rank0.txt").read_text()
        if answer["returncodes"] != [0]:
            return (text,)
        distances = [value for reading in read(text) for _, value in reading.values]
        return tuple(
            f"{name}: weights differ by {distance:.1e}"
            for name, distance in zip(case.exports, distances, strict=True)
            if not distance <= limit
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of one converted run with the original; None when the converted script did not end well."""

    comparison: Comparison | None
    exports: tuple[str, ...]
    outcome: Outcome

    @property
    def agrees(self) -> bool:
        return self.comparison is not None and self.comparison.same and not self.exports

    @property
    def summary(self) -> str:
        """A few words for a table."""
        if self.comparison is None:
            return "hangs" if self.outcome.timed_out else "fails"
        if not self.comparison.same_lines:
            return "other lines"
        return f"{self.comparison.worst:.0e}{' and the export' if self.exports else ''}"

    def explain(self) -> str:
        """Why it does not agree, with the end of the output."""
        reasons = [*(self.comparison.differences[:8] if self.comparison else ("did not end well",)), *self.exports]
        return "\n".join([*reasons, self.outcome.excerpt()])


def convert(script: Path, stage: int, output: Path) -> None:
    """Let the tool write its conversion into ``output``. Work left for the person (exit code 1) is not an error."""
    path = [str(REPOSITORY / "server"), *filter(None, [os.environ.get("PYTHONPATH")])]
    result = subprocess.run(
        [sys.executable, "-m", "dsmigrate", str(script), "--zero-stage", str(stage), "--output", str(output)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if result.returncode not in (0, 1) or not (output / script.name).is_file():
        raise ConversionError(
            f"dsmigrate {script.name} --zero-stage {stage}: exit code {result.returncode}, "
            f"wrote {sorted(p.name for p in output.glob('*'))}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        )


def adapt_config(path: Path, stage: int, *, choose_stage: bool) -> None:
    """Make ZeRO 3 partition small models too; the stage itself must be the one that was asked for."""
    config = json.loads(path.read_text())
    zero = config.setdefault("zero_optimization", {})
    if choose_stage:
        zero["stage"] = stage
    assert zero.get("stage", 0) == stage, f"{path}: asked for ZeRO {stage}, got {zero}"
    if stage == 3:
        zero["stage3_param_persistence_threshold"] = 0
    path.write_text(json.dumps(config, indent=2) + "\n")
