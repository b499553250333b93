"""What is seen between two optimizer steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Window:
    """Everything of one optimizer step; tensors wait until the window is closed, so that a GPU need not.

    ``losses`` holds what each backward differentiates, without the loss scale. ``carry`` is the norm of gradients
    that were there before the first backward. ``norm`` is taken before clipping, ``applied`` after it, ``limit`` is
    the limit of clipping. ``outside`` counts steps of an optimizer that the engine knows nothing of, ``idle`` names
    parameters that no backward of this process has reached, where DDP looks for them.
    """

    losses: list[Any] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    data: list[Any] = field(default_factory=list)
    modes: set[bool] = field(default_factory=set)
    autocast: set[str] = field(default_factory=set)
    random: int | None = None
    carry: float | None = None
    norm: float | None = None
    applied: float | None = None
    limit: float | None = None
    groups: list[dict[str, Any]] = field(default_factory=list)
    optimizer: str = ""
    scale: float | None = None
    unscaled: bool = False
    schedulers: int = 0
    stepped: bool = False
    skipped: bool = False
    outside: int = 0
    idle: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)


def value(item: Any) -> float:
    """Return the number that was kept."""
    return float(item)


def closed(window: Window) -> dict[str, Any]:
    """Return the window as fields of a record."""
    return {
        "losses": [value(loss) for loss in window.losses],
        "batches": window.batches,
        "data": [[int(exact), value(product), value(norm), kind] for exact, product, norm, kind in window.data],
        "train": sorted(window.modes),
        "autocast": sorted(window.autocast),
        "random": window.random,
        "carry": window.carry,
        "norm": window.norm,
        "applied": window.applied,
        "limit": window.limit,
        "groups": window.groups,
        "optimizer": window.optimizer,
        "scale": window.scale,
        "schedulers": window.schedulers,
        "skipped": window.skipped,
        "outside": window.outside,
        "idle": window.idle,
    }
