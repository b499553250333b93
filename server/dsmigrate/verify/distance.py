"""How far apart the weights of two runs lie, from their sketches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.verify.model import Input, Run, Step, Weights

Sketch = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Apart:
    """One tensor: the norm of the difference, and of how far the original has moved it."""

    name: str
    difference: float
    moved: float
    norm: float


def apart(one: Sketch, other: Sketch) -> float:
    """Estimate the norm of the difference of two tensors; infinite where their shapes differ."""
    if one["shape"] != other["shape"]:
        return math.inf
    products = zip(one["products"], other["products"], strict=True)
    squares = [(float(a) - float(b)) ** 2 for a, b in products]
    return math.sqrt(sum(squares) / len(squares)) if squares else 0.0


def inputs(before: Step, after: Step) -> float:
    """Return how far the inputs of two steps lie apart, relatively: 0 where every bit is the same.

    Infinite where whole numbers differ; 0 where the two call their models with other arguments, so that nothing can be
    said.
    """
    found = 0.0
    if len(before.data) != len(after.data):
        return found
    for row, other in zip(before.data, after.data, strict=True):
        if len(row) == len(other):
            found = max([found, *map(_of_input, row, other)])
    return found


def _of_input(one: Input, other: Input) -> float:
    if one == other:
        return 0.0
    if one.kind == other.kind and not is_real(one.kind):
        return math.inf
    scale = max(one.norm, other.norm)
    found = abs(one.product - other.product) / scale if scale else 0.0
    return found if math.isfinite(found) else math.inf


def is_real(kind: str) -> bool:
    """Return whether a type of tensor holds what may have been rounded."""
    return kind.startswith(("float", "bfloat", "complex"))


def difference(one: Weights, other: Weights, *, buffers: bool = False) -> float:
    """Return the estimated norm of the difference of two models over all tensors that both have, over their norm."""
    names = [name for name in one.tensors if name in other.tensors and is_buffer(one, name) == buffers]
    total = math.hypot(*(apart(one.tensors[name], other.tensors[name]) for name in names)) if names else 0.0
    norm = math.hypot(*(float(one.tensors[name]["norm"]) for name in names)) if names else 0.0
    return total / norm if norm else total


def tensors(original: Run, converted: Run) -> Iterator[Apart]:
    """Compare the trained tensors at the end of two runs, as rank 0 sees them."""
    if not original.end or not converted.end:
        return
    before, after, other = original.start, original.end[0], converted.end[0]
    for name, sketch in after.tensors.items():
        if name in other.tensors and name in before.tensors and not is_buffer(after, name):
            moved = apart(before.tensors[name], sketch)
            yield Apart(name, apart(sketch, other.tensors[name]), moved, float(sketch["norm"]))


def moved(run: Run) -> float:
    """Return how far training has moved the weights of a run."""
    if not run.end:
        return 0.0
    names = [name for name in run.start.tensors if name in run.end[0].tensors and not is_buffer(run.start, name)]
    return math.hypot(*(apart(run.start.tensors[name], run.end[0].tensors[name]) for name in names)) if names else 0.0


def is_buffer(weights: Weights, name: str) -> bool:
    """Return whether a tensor is a buffer."""
    return bool(weights.tensors[name].get("buffer"))
