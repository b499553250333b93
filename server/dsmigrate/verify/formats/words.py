"""Words and numbers that every format uses."""

from __future__ import annotations

import math

from dsmigrate.verify.model import Comparison, Difference, Ending, Resumed, Verdict, Verification

SHOWN = ("loss", "gradient norm", "clipped gradient norm", "learning rate", "weights")


def status(comparison: Comparison) -> str:
    """Return "agrees", "parts", "crashed" or "timed_out"."""
    if comparison.converted.outcome.ending is not Ending.FINISHED:
        return str(comparison.converted.outcome.ending.value)
    return "agrees" if comparison.agrees else "parts"


def pair(verification: Verification) -> str:
    """Return what was compared with what."""
    return f"{verification.original} → {verification.converted or 'its conversion'}"


def title(verification: Verification, verdict: Verdict) -> str:
    """Return what a verdict is about."""
    return pair(verification) + ("" if verdict.stage is None else f" at ZeRO {verdict.stage}")


def headline(comparison: Comparison) -> str:
    """Return the verdict in one line."""
    count = len(comparison.converted.steps)
    found = status(comparison)
    if found == "crashed":
        return f"the conversion fails after {counted(count)}"
    if found == "timed_out":
        return f"the conversion does not end in its time, after {counted(count)}"
    if not comparison.converted.steps:
        return "the conversion ended without an optimizer step of a DeepSpeed engine"
    if found == "agrees":
        return f"agrees over {counted(count)} ({comparison.precision})"
    first = comparison.first
    if first is None or first.step is None:
        return f"parts over {counted(count)}: {first.quantity if first else 'nothing was compared'}"
    return f"parts at step {first.step + 1}: {first.quantity}"


def counted(steps: int) -> str:
    """Return a number of optimizer steps in words."""
    return "1 optimizer step" if steps == 1 else f"{steps} optimizer steps"


def difference(found: Difference) -> str:
    """Return a difference in one line."""
    where = "in the end" if found.step is None else f"at step {found.step + 1}"
    if found.quantity == "weights":
        return f"weights {where}: {exponent(found.error)}, allowed {exponent(found.allowed)} ({found.detail})"
    values = f"{number(found.original)} in the original, {number(found.converted)} in the conversion"
    apart = f" ({exponent(found.error)}, allowed {exponent(found.allowed)})" if math.isfinite(found.error) else ""
    return f"{found.quantity} {where}: {values}{apart}"


def resume_line(resumed: Resumed) -> str:
    """Return what became of a run that was stopped and started again."""
    said = f"stopped after step {resumed.stopped_after} and started again" if resumed.stopped_after else "resuming"
    if resumed.comparison is None:
        return f"{said}: {resumed.problem}"
    if resumed.problem:
        return f"{said}: {resumed.problem}"
    if resumed.agrees:
        return (
            f"{said}: continues as if it had not been stopped, for {counted(len(resumed.comparison.converted.steps))}"
        )
    first = resumed.comparison.first
    excuse = "; the original does not go on exactly either" if resumed.excused else ""
    return f"{said}: {difference(first) if first else headline(resumed.comparison)}{excuse}"


def number(value: object) -> str:
    """Return a value for people."""
    if isinstance(value, (tuple, list)):
        return ", ".join(dict.fromkeys(map(number, value))) or "none"
    if isinstance(value, float):
        return (
            f"{value:.0f}"
            if value == int(value if math.isfinite(value) else 0) and abs(value) < 1e6
            else f"{value:.7g}"
        )
    return "none" if value is None else str(value)


def exponent(value: float) -> str:
    """Return a relative difference."""
    return "0" if value == 0 else f"{value:.1e}"


def overhead(comparison: Comparison) -> str:
    """Return what a step takes, and what of it is the harness."""
    parts = [
        f"{run_name} {run.seconds * 1e3:.1f} ms, of which {run.overhead * 1e3:.1f} ms measuring"
        for run_name, run in (("original", comparison.original), ("conversion", comparison.converted))
        if run.steps
    ]
    return f"per step: {'; '.join(parts)}"
