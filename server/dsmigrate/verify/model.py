"""What travels between starting, reading, comparing and reporting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple


class VerifyError(Exception):
    """The verification could not be made; the message says why and what to do."""


class Ending(str, Enum):
    """How a run ended."""

    FINISHED = "finished"
    CRASHED = "crashed"
    HUNG = "hung"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the processes of a run.

    ``codes`` are their exit codes; ``tails`` the last lines of what each printed; ``stacks`` where each rank stood when
    its time was up; ``first`` is the process that failed before all others, and when; ``free`` how many bytes were left
    on the disk, ``still`` the seconds without a step after which it was taken for a hang.
    """

    ending: Ending
    command: str
    codes: tuple[int | None, ...] = ()
    tails: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    seconds: float = 0.0
    first: tuple[int, float] | None = None
    free: int | None = None
    still: float = 0.0


class Input(NamedTuple):
    """A tensor that went into the model: ``exact`` numbers its bits, ``product`` moves with how far it is moved."""

    exact: int
    product: float
    norm: float
    kind: str


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step, over all ranks.

    ``loss`` is the mean over ranks of the sum over the backwards of a step (scripts divide by their number, the engine
    does too: the sum is the loss of the effective batch). ``norm`` is the norm of the gradients before clipping and
    ``applied`` after it, ``limit`` the limit of clipping, ``samples`` a sum over backwards and ranks. ``data`` holds
    what the inputs are told by, one tuple per rank, ``first`` is the mean loss of the first backward. ``idle`` names,
    per rank, the parameters that no backward has reached, as far as that was looked for. ``seconds`` is the wall time
    of the step, ``overhead`` what the harness took of it.
    """

    index: int
    loss: float
    losses: tuple[float, ...]
    backwards: int
    samples: int
    data: tuple[tuple[Input, ...], ...]
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
    first: float | None = None
    idle: tuple[frozenset[str], ...] = ()

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
    ``taken`` how many steps each rank has recorded, where ``steps`` are those that all of them have. ``crashes`` are
    the errors of the ranks, the earliest first; ``saved`` the files and folders of its checkpoints, and ``reads`` what
    it has read of those of the run that it continues; ``full`` is a file that the disk had no room for.
    """

    name: str
    outcome: Outcome
    setting: Mapping[str, Any]
    steps: tuple[Step, ...]
    start: Weights
    end: tuple[Weights, ...]
    saves: tuple[int, ...] = ()
    crashes: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()
    saved: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    full: str = ""

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
class Noise:
    """How far two runs of the original lie apart, by the comparison of both.

    ``errors`` are the relative errors of each quantity by step, ``differences`` what parts beyond its tolerance, and
    ``steps`` how many steps the second run has taken; ``reason`` is why it parts.
    """

    errors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    steps: int = 0
    reason: str = ""

    def limit(self, quantity: str, step: int | None) -> float:
        """Return the error up to which a difference at a step (None: of the whole run) says nothing.

        One pair of runs may lie closer together than another. What is not the same from a step on
        makes everything noise that training leads to from there.
        """
        errors = self.errors.get(quantity, ())
        parted = [one.step for one in self.differences if one.step is not None]
        from_here = _TIMES * max(errors, default=0.0)
        if quantity == "weights":
            return max(from_here, math.inf if parted and not errors else 0.0)
        if step is None or quantity in _SET:
            return from_here if any(one.quantity == quantity for one in self.differences) else 0.0
        if parted and step >= min(parted):
            return from_here if errors and math.isfinite(from_here) and from_here > 0 else math.inf
        return _TIMES * max(errors[: step + 1], default=0.0)

    @property
    def is_silent(self) -> bool:
        """Whether both runs were the same, bit by bit, as far as they were compared."""
        return not any(any(errors) for errors in self.errors.values()) and not self.differences


_TIMES = 10.0
_SET = frozenset({"engine", "samples", "backwards", "learning rate", "weight decay", "number of steps"})
"""What the script sets, whatever is trained."""

SILENT = Noise()

ORIGINAL = "original"
"""The name of the original's run."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two runs part: ``certain`` was observed, the rest is inferred from numbers. It explains ``quantity``."""

    id: str
    title: str
    why: str
    advice: str
    certain: bool = False
    quantity: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two runs, the first of each quantity in causal order; empty where they agree.

    ``worst`` is the largest relative error of every quantity that was compared, ``errors`` are those of all steps;
    ``excused`` is what the ``noise`` of the original explains.
    """

    original: Run
    converted: Run
    precision: str
    differences: tuple[Difference, ...]
    causes: tuple[Cause, ...]
    worst: Mapping[str, float]
    notes: tuple[str, ...] = ()
    errors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    excused: tuple[Difference, ...] = ()
    noise: Noise = SILENT

    @property
    def agrees(self) -> bool:
        """Whether nothing parts beyond its tolerance, and the original can be compared with."""
        return not self.differences and not self.is_noise and self.converted.is_complete

    @property
    def is_noise(self) -> bool:
        """Whether all that parts is what the original does not repeat either."""
        return bool(self.excused) and bool(self.noise.differences) and not self.differences

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
        return self.comparison is not None and self.comparison.agrees and not self.problem


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

    @property
    def is_open(self) -> bool:
        """Whether the original says too little: it does not repeat itself, or does not resume."""
        is_noise, resumed = self.comparison.is_noise, self.resumed
        if resumed is not None and not (resumed.agrees or resumed.excused):
            return (is_noise or self.comparison.agrees) and resumed.name == ORIGINAL
        return is_noise


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

    @property
    def is_open(self) -> bool:
        """Whether it could not be found out: something does not agree, and nothing is wrong with the conversion."""
        return not self.agrees and all(verdict.agrees or verdict.is_open for verdict in self.verdicts)
