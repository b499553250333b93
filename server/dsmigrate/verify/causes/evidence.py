"""What signatures look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dsmigrate.verify import distance
from dsmigrate.verify.model import Difference, Run, Step

SAME = 1e-3
"""Relative differences below this are no evidence of anything but rounding."""

ROUNDED = 2e-2
"""How far rounding to half precision may move inputs, relatively."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Two runs and one of their differences, which is at ``index``; ``a`` and ``b`` are the two steps there.

    ``position`` is that of the difference among all, the earliest first. With ``whole`` everything is looked at, and no
    difference in particular.
    """

    original: Run
    converted: Run
    differences: tuple[Difference, ...]
    position: int = 0
    whole: bool = False

    @property
    def difference(self) -> Difference:
        """The difference that is to be explained."""
        return self.differences[self.position]

    @property
    def index(self) -> int:
        """The step of the difference; the last common one for what holds of the whole run."""
        last = min(len(self.original.steps), len(self.converted.steps)) - 1
        step = None if self.whole else self.difference.step
        return last if step is None else min(step, last)

    @property
    def a(self) -> Step:
        """The original's step."""
        return self.original.steps[self.index]

    @property
    def b(self) -> Step:
        """The converted script's step."""
        return self.converted.steps[self.index]

    def until(self) -> list[tuple[Step, Step]]:
        """Return the pairs of steps up to the difference, that included."""
        pairs = list(zip(self.original.steps, self.converted.steps, strict=False))
        return pairs[: self.index + 1]

    def setting(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - settings are of any type
        """Return what is known of the converted run."""
        return self.converted.setting.get(name, default)

    @property
    def ranks(self) -> int:
        """How many processes trained."""
        return int(self.original.setting.get("ranks", 1))

    def loss_ratio(self) -> float | None:
        """Return the loss that is differentiated over the original's; of the first backward, if the windows differ."""
        if self.a.backwards == self.b.backwards:
            return ratio(self.a.loss, self.b.loss)
        return ratio(self.a.first, self.b.first)

    def same_data(self) -> bool:
        """Return whether both have seen the same inputs up to the difference."""
        return all(alike(before, after) for before, after in self.until())

    def same_start(self) -> bool:
        """Return whether both started with the same weights, as far as these were whole when they were seen."""
        return distance.difference(self.original.start, self.converted.start) < SAME


def alike(before: Step, after: Step) -> bool:
    """Return whether two steps have seen the same inputs; half precision may have rounded one of them."""
    return distance.inputs(before, after) <= ROUNDED


def close(one: tuple[float, ...], other: tuple[float, ...], tolerance: float = SAME) -> bool:
    """Return whether two rows of numbers are the same."""
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other, strict=True)
    )


def ratio(before: float | None, after: float | None) -> float | None:
    """Return ``after`` over ``before``; None where that says nothing."""
    if before is None or after is None or not before or not math.isfinite(before) or not math.isfinite(after):
        return None
    return after / before


def is_ratio(found: float | None, wanted: float, tolerance: float = 2e-3) -> bool:
    """Return whether a ratio is the wanted one, and not 1."""
    return found is not None and abs(wanted - 1) > 0.01 and math.isclose(found, wanted, rel_tol=tolerance)
