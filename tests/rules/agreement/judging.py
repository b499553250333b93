"""Asking the real DeepSpeed: judge processes that are started again when they hang, end, or have judged enough."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.e2e.launching import free_port, torch_python, training_environment
from tests.schemas.judge import world as fitting

from .case import Case

CHILD = Path(__file__).resolve().parents[2] / "e2e" / "rule_judge.py"
START_SECONDS = 120.0
SECONDS = 20.0
AT_ONCE = 2
PER_PROCESS = 500
"""Configs after which a process is replaced: engines leave traces."""
WORLDS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64)
"""Numbers of processes of which one must fit when the number is unknown."""

ALONE = "needs more processes"
MESH = {"sequence_parallel_size", "data_parallel_size"}
"""Keys that together make a mesh of processes, which the judge, being one process, leaves out."""
NOT_HERE = (
    ("needs a GPU that reads files (aio.use_gds)", r"use_gds|GDS"),
    ("needs CUDA (super_offload)", r"[Ss]uper_?[Oo]ffload"),
    (
        "needs a package that is not installed",
        r"No module named|import apex|access local variable 'Mu|install DataStates",
    ),
    (ALONE, r"world.?size|num(?:ber of)? ranks"),
    ("compiles for a GPU", r"^KeyError: 0$|unknown parameter type"),
    ("needs a newer torch", r"Adafactor is not a supported DeepSpeed Optimizer"),
    ("asks for the batch of all processes", r"^Elasticity"),
    ("needs another model", r"per_head_muon|AutoEP|expert|does not support dense gradients|weights be a multiple"),
    ("needs a cluster", r"CROSS_SIZE"),
    ("needs a compiled kernel or a GPU", r"Kernel|kernel|CUDA|cuda|not been implemented on CPU|No accelerator"),
    ("passes on a GPU, whose kernels take true for 1", r"Boolean alpha only supported"),
    ("overflows on weights that no kernel wrote", r"loss scale already at minimum"),
    ("ends with its schedule", r"Tried to step \d+ times"),
    ("needs more memory", r"can't allocate|[Oo]ut of memory|MemoryError|Cannot allocate memory"),
    ("needs a file", r"No such file or directory|FileNotFoundError|Permission denied"),
    ("ends the process on purpose", r"^SystemExit"),
    ("the judge hung or ended", r"^judge:"),
)
"""Errors that say more of this machine, or of the tiny model, than of the config."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How far DeepSpeed came: ``accepted``, or where it failed (``config``, ``engine``, ``step``), or ``unjudged``."""

    verdict: str
    error: str = ""
    reason: str = ""
    """Why a config cannot be judged here."""

    @property
    def refused(self) -> bool:
        """Whether DeepSpeed's loader or engine refuses the config."""
        return self.verdict in {"config", "engine"}


class Judge:
    """One process that judges configs."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [torch_python(), str(CHILD), str(free_port())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=training_environment() | {"TMPDIR": self._folder.name},
            text=True,
        )
        self.asked = 0

    def ask(self, case: Case, *, deep: bool) -> Answer:
        """Return the answer to one case."""
        asked: dict[str, Any] = {"deep": deep, "worlds": worlds(case)}
        as_data = case.config is not None and case.text is not None
        asked |= {"config": case.config} if as_data else {"text": case.written}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        seconds = SECONDS if self.asked else START_SECONDS
        self.asked += 1
        watch = threading.Timer(seconds, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watch.cancel()
        if not line:
            return judged("engine", "judge: no answer")
        answer = judged(**json.loads(line))
        return replace(answer, verdict="unjudged", reason=ALONE) if deep and is_for_many(case, answer) else answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return self._process.poll() is None and self.asked < PER_PROCESS

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._folder.cleanup()


def worlds(case: Case) -> list[int]:
    """Return the numbers of processes of which one must do: the known one, or many, one that fits first."""
    if case.world is not None:
        return [case.world]
    config = case.data or {}
    ranks = config.get("sequence_parallel_size")
    more = [ranks * world for world in WORLDS] if isinstance(ranks, int) and ranks > 1 else []
    return list(dict.fromkeys([fitting(config), *WORLDS, *more]))


def is_for_many(case: Case, answer: Answer) -> bool:
    """Return whether an answer would be another one with more processes than the one there is."""
    config = case.data or {}
    stage = config.get("zero_optimization")
    shards = stage.get("zero_hpz_partition_size") if isinstance(stage, dict) else None
    odd = isinstance(shards, int) and shards > 1 and case.world is not None and case.world % shards != 0
    if answer.verdict in {"accepted", "step"}:
        return odd or config.keys() >= MESH
    tensor = config.get("tensor_parallel")
    split = tensor.get("autotp_size") if isinstance(tensor, dict) else None
    return answer.verdict == "engine" and not answer.error.partition(": ")[2] and isinstance(split, int) and split > 1


def judged(verdict: str, error: str) -> Answer:
    """Return an answer; one that says more of this machine than of the config is ``unjudged``."""
    if verdict == "accepted":
        return Answer(verdict)
    asked = NOT_HERE[:1] if verdict == "config" else NOT_HERE
    reason = next((reason for reason, pattern in asked if re.search(pattern, error)), "")
    return Answer("unjudged" if reason else verdict, error, reason)


def judge(cases: Sequence[Case], *, deep: bool = True) -> list[Answer]:
    """Return DeepSpeed's answers, in order; with ``deep`` those of its engine, else of its config class."""
    parts = [cases[start : start + PER_PROCESS] for start in range(0, len(cases), PER_PROCESS)]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return [answer for part in pool.map(lambda part: list(_answers(part, deep=deep)), parts) for answer in part]


def _answers(cases: Iterable[Case], *, deep: bool) -> Iterator[Answer]:
    process = Judge()
    try:
        for case in cases:
            if not process.alive:
                process.close()
                process = Judge()
            yield process.ask(case, deep=deep)
    finally:
        process.close()
