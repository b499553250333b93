"""What travels between starting, reading, comparing and reporting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from statistics import fmean
from typing import Any


class VerifyError(Exception):
    """The verification could not be made; the message says why and what to do."""


class Ending(str, Enum):
    """How a run ended."""

    FINISHED = "finished"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the processes of a run.

    ``codes`` are their exit codes; ``tails`` the last lines of what each printed; ``stacks`` where the script stood,
    per process, when its time was up.
    """

    ending: Ending
    command: str
    codes: tuple[int | None, ...] = ()
    tails: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step, over all ranks.

    ``loss`` is the mean over ranks of the sum over the backwards of a step (scripts divide by their number, the engine
    does too: the sum is the loss of the effective batch). ``norm`` is the norm of the gradients before clipping and
    ``applied`` after it, ``limit`` the limit of clipping, ``samples`` a sum over backwards and ranks. ``data`` holds
    numbers made of the inputs, one tuple per rank. ``seconds`` is the wall time of the step, ``overhead`` what the
    harness took of it.
    """

    index: int
    loss: float
    losses: tuple[float, ...]
    backwards: int
    samples: int
    data: tuple[tuple[float, ...], ...]
    norm: float | None
    norms: tuple[float, ...]
    applied: float | None
    limit: float | None
    groups: tuple[Mapping[str, Any], ...]
    optimizer: str
    train: tuple[bool, ...]
    autocast: tuple[str, ...]
    random: int | None
    carry: float | None
    scale: float | None
    schedulers: int
    skipped: bool
    outside: int
    seconds: float
    overhead: float

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rate of each parameter group."""
        return tuple(float(group.get("lr", 0.0)) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Weights:
    """Sketches of all tensors of a model by name, as ``harness.weights`` makes them."""

    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One training run as its records tell it. ``end`` holds the weights as each rank saw them at last.

    ``saves`` are the steps after which a checkpoint was saved; ``problems`` what the harness could not measure;
    ``taken`` how many steps each rank has recorded, where ``steps`` are those that all of them have.
    """

    name: str
    outcome: Outcome
    setting: Mapping[str, Any]
    steps: tuple[Step, ...]
    start: Weights
    end: tuple[Weights, ...]
    saves: tuple[int, ...] = ()
    crash: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether it ended well and trained at all."""
        return self.outcome.ending is Ending.FINISHED and bool(self.steps)

    @property
    def overhead(self) -> float:
        """Mean seconds per step that the harness took, of the same steps as ``seconds``."""
        return fmean(step.overhead for step in self._timed) if self.steps else 0.0

    @property
    def seconds(self) -> float:
        """Mean seconds per step, the first left out where there are others."""
        return fmean(step.seconds for step in self._timed) if self.steps else 0.0

    @property
    def _timed(self) -> tuple[Step, ...]:
        return self.steps[1:] or self.steps


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity that parts. ``step`` counts from 0, None for what holds of the whole run; ``error`` is relative."""

    quantity: str
    step: int | None
    original: Any
    converted: Any
    error: float
    allowed: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two runs part: ``certain`` was observed, the rest is inferred from numbers."""

    id: str
    title: str
    why: str
    advice: str
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two runs, the first of each quantity in causal order; empty where they agree.

    ``worst`` is the largest relative error of every quantity that was compared.
    """

    original: Run
    converted: Run
    precision: str
    differences: tuple[Difference, ...]
    causes: tuple[Cause, ...]
    worst: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether nothing parts beyond its tolerance."""
        return not self.differences and self.converted.is_complete

    @property
    def first(self) -> Difference | None:
        """The earliest difference."""
        return self.differences[0] if self.differences else None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that was stopped and started again, compared with one that was not.

    ``excused`` says that the original does not go on exactly either, so that a difference says nothing about the
    conversion.
    """

    name: str
    stopped_after: int | None
    comparison: Comparison | None
    problem: str = ""
    excused: bool = False

    @property
    def agrees(self) -> bool:
        """Whether it continues as if it had never been stopped."""
        return self.comparison is not None and self.comparison.agrees


@dataclass(frozen=True, slots=True)
class Verdict:
    """One converted script at one ZeRO stage (None: as its config says) against the original."""

    stage: int | None
    comparison: Comparison
    resumed: Resumed | None = None

    @property
    def agrees(self) -> bool:
        """Whether training and, where it was asked for, its continuation are those of the original."""
        resumed = self.resumed
        return self.comparison.agrees and (resumed is None or resumed.agrees or resumed.excused)


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that one call has found."""

    original: Path
    converted: Path | None
    device: str
    verdicts: tuple[Verdict, ...]
    original_resumed: Resumed | None = None
    kept: Path | None = None

    @property
    def agrees(self) -> bool:
        """Whether every verdict is good."""
        return all(verdict.agrees for verdict in self.verdicts)
