"""Reads the numbers that a training run prints, and compares two runs.

The scripts are judged by what a person would look at: the losses, and where a line has them the gradient norm and
the learning rate. Every line that names a loss is one reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_FLOAT = r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|nan|inf"
_NAMED = re.compile(
    rf"\b(?P<name>[a-z_]*(?:loss|norm|lr)(?:_[a-z]+)?)\b[\"']?\s*[:=]?\s*(?P<value>{_FLOAT})\b", re.IGNORECASE
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d |\d\d:\d\d:\d\d(?:[,.]\d+)?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?|\b\d+[eE][-+]?\d+|\bnan\b|\binf\b")
_DEEPSPEED_LOG = re.compile(r"^\[[-\d]+ [\d:,]+\] \[[A-Z]+\]")


@dataclass(frozen=True, slots=True)
class Reading:
    """One line. ``label`` is the line without its decimal numbers, ``values`` the named numbers in their order."""

    label: str
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The largest relative difference of a loss, whether the lines are the same, and what exceeds a tolerance."""

    worst: float
    same_lines: bool
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.differences


def read(text: str) -> tuple[Reading, ...]:
    """The readings in the output of rank 0; DeepSpeed's own log lines are not among them."""
    readings = []
    for line in text.splitlines():
        if _DEEPSPEED_LOG.match(line):
            continue
        values = tuple((match["name"].lower(), float(match["value"])) for match in _NAMED.finditer(line))
        if any("loss" in name for name, _ in values):
            readings.append(Reading(" ".join(_DECIMAL.sub("#", _TIME.sub("", line)).split()), values))
    return tuple(readings)


def joined(first: Sequence[Reading], second: Sequence[Reading]) -> tuple[Reading, ...]:
    """What a stopped run and its continuation printed together.

    A script that evaluates at the top of its loop prints the line of the point where it stopped once more when it
    continues. That line counts once. A continuation that repeats more than that began at the wrong place.
    """
    again = bool(first and second and first[-1].label == second[0].label)
    return (*first[: len(first) - again], *second)


def _relative(expected: float, actual: float) -> float:
    if math.isnan(expected) or math.isnan(actual):
        return 0.0 if math.isnan(expected) and math.isnan(actual) else math.inf
    if expected == actual:
        return 0.0
    return abs(expected - actual) / max(abs(expected), 1e-6)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Relative differences that are allowed: of the first line's losses, of the others, of norms, of learning rates.

    The first loss comes from the same weights and the same data, before anything was averaged: it has no excuse.
    """

    first: float
    loss: float
    norm: float
    lr: float

    def of(self, line: int, name: str) -> float:
        """The tolerance of one number."""
        if "loss" in name:
            return self.loss if line else self.first
        return self.norm if "norm" in name else self.lr


EXACT = Tolerance(first=0.0, loss=0.0, norm=0.0, lr=0.0)


def compare(expected: Sequence[Reading], actual: Sequence[Reading], allowed: Tolerance) -> Comparison:
    """Compare two runs line by line."""
    worst, differences = 0.0, []
    same_lines = [reading.label for reading in expected] == [reading.label for reading in actual]
    if len(expected) != len(actual):
        differences.append(f"{len(expected)} lines with a loss became {len(actual)}")
    for index, (before, after) in enumerate(zip(expected, actual, strict=False)):
        if before.label != after.label or [n for n, _ in before.values] != [n for n, _ in after.values]:
            differences.append(f"line {index}: {before.label!r} became {after.label!r}")
            break
        for (name, wanted), (_, found) in zip(before.values, after.values, strict=True):
            error = _relative(wanted, found)
            if "loss" in name:
                worst = max(worst, error)
            if error > allowed.of(index, name):
                differences.append(f"line {index} ({before.label}): {name} {wanted!r} became {found!r} ({error:.1e})")
    return Comparison(worst, same_lines, tuple(differences))
