"""What a converted run may differ by, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .cases import Case
from .launching import Outcome
from .readings import Comparison, Tolerance

FULL = Tolerance(first=1e-6, loss=1e-5, norm=1e-4, lr=1e-7)
HALF = Tolerance(first=1e-6, loss=2e-3, norm=1e-2, lr=1e-7)
"""Sums over ranks are taken in another order, which rounding in half precision makes visible after some steps."""

HALF_AT_ZERO_3 = Tolerance(first=2e-3, loss=5e-3, norm=2e-2, lr=1e-7)
"""``memory_efficient_linear``, on by default at ZeRO 3, rounds a product before it adds the bias. With the key set to
false the first loss is exact there too (DeepSpeed 0.19.8)."""

RESUMED = Tolerance(first=1e-6, loss=1e-6, norm=1e-5, lr=1e-7)
GROWN = replace(RESUMED, loss=5e-6)
"""A conversion has rounded otherwise before it saved, and a large learning rate lets that grow: 8e-7 in the file of
vit_fp16_scaler become 3e-6 in its last losses."""


def tolerance(case: Case, stage: int) -> Tolerance:
    """What a conversion may differ by at a ZeRO stage."""
    if case.precision == "fp32":
        return FULL
    return HALF_AT_ZERO_3 if stage == 3 else HALF


def resumed_tolerance(case: Case, writer: int | None, reader: int | None) -> Tolerance:
    """What a run that goes on from a file may differ by; a side is a ZeRO stage, or None for the original."""
    if case.precision == "fp32":
        return RESUMED if writer is None else GROWN
    allowed = tolerance(case, max(side for side in (writer, reader) if side is not None))
    return replace(allowed, first=allowed.loss)


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
