"""How far two runs that do the same may lie apart, by precision.

In full precision the two differ in the order of additions; that is a few units in the last place at first, and grows
from step to step as training amplifies it. In half precision the same shows as rounding. The first loss comes from the
same weights and the same data, before anything was averaged: it has next to no excuse.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.verify.model import Run


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Relative differences that are allowed, of the first loss, later losses, gradient norms and weights.

    Those of weights are relative to how far training has moved them. ``growth`` is what is added per step, as a share.
    """

    name: str
    first: float
    loss: float
    norm: float
    weights: float
    rate: float = 1e-6
    growth: float = 0.2

    def of(self, quantity: str, step: int) -> float:
        """Return what is allowed of a quantity at a step, counted from 0."""
        if quantity == "loss":
            return self.first if step == 0 else self.loss * (1 + self.growth * step)
        if quantity in {"gradient norm", "clipped gradient norm"}:
            return self.norm * (1 + self.growth * step)
        return self.rate


FULL = Tolerance("full precision", first=2e-6, loss=1e-5, norm=1e-4, weights=1e-2)
FULL_ON_GPU = Tolerance("full precision on a GPU", first=1e-5, loss=1e-4, norm=1e-3, weights=5e-2)
"""Kernels whose order of additions is not fixed."""

MIXED = Tolerance("mixed precision", first=2e-6, loss=2e-3, norm=1e-2, weights=1e-1)
MIXED_AT_ZERO_3 = Tolerance("mixed precision at ZeRO 3", first=2e-3, loss=5e-3, norm=2e-2, weights=1.5e-1)
"""``memory_efficient_linear``, on by default at ZeRO 3, rounds a product before it adds the bias (DeepSpeed 0.19.8)."""

HALF = Tolerance("half-precision weights", first=2e-2, loss=3e-2, norm=1e-1, weights=3e-1)


def scaled(tolerance: Tolerance, factor: float) -> Tolerance:
    """Return a tolerance with everything multiplied."""
    return Tolerance(
        tolerance.name,
        tolerance.first * factor,
        tolerance.loss * factor,
        tolerance.norm * factor,
        tolerance.weights * factor,
        tolerance.rate,
        tolerance.growth,
    )


def choose(original: Run, converted: Run) -> Tolerance:
    """Return the tolerance for the precision that the *original* trains in.

    A conversion that lowers the precision is measured by what it should have been.
    """
    on_gpu = original.setting.get("device") != "cpu"
    if any("16" in str(one.get("dtype")) for one in original.start.tensors.values() if not one.get("buffer")):
        return HALF
    if any(step.autocast for step in original.steps):
        return MIXED_AT_ZERO_3 if converted.setting.get("zero_stage") == 3 else MIXED
    return FULL_ON_GPU if on_gpu else FULL
