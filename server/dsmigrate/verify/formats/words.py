"""Words and numbers that every format uses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsmigrate.verify import failures
from dsmigrate.verify.model import Cause, Comparison, Difference, Ending, Resumed, Verdict, Verification
from dsmigrate.verify.numbers import counted, told_apart
from dsmigrate.verify.request import Request

SHOWN = ("loss", "gradient norm", "clipped gradient norm", "learning rate", "weights")


def status(comparison: Comparison) -> str:
    """Return "agrees", "parts", "crashed", "hung", "timed_out", or "unrepeatable" where the original is all noise."""
    if comparison.converted.outcome.ending is not Ending.FINISHED:
        return str(comparison.converted.outcome.ending.value)
    if comparison.is_noise:
        return "unrepeatable"
    return "agrees" if comparison.agrees else "parts"


def pair(one: Verification | Request) -> str:
    """Return what was, or was to be, compared with what."""
    return f"{one.original} → {one.converted or 'its conversion'}"


def title(verification: Verification, verdict: Verdict) -> str:
    """Return what a verdict is about."""
    return pair(verification) + ("" if verdict.stage is None else f" at ZeRO {verdict.stage}")


def headline(comparison: Comparison) -> str:
    """Return the verdict in one line."""
    count = len(comparison.converted.steps)
    found = status(comparison)
    if found in {"crashed", "hung", "timed_out"}:
        return f"the conversion {failures.headline(comparison.converted)}"
    if found == "unrepeatable":
        return "the original does not repeat itself, so that nothing can be said of the conversion"
    if not comparison.converted.steps:
        return "the conversion ended without an optimizer step of a DeepSpeed engine"
    if found == "agrees":
        return f"agrees over {counted(count)} ({comparison.precision})"
    first = comparison.first
    if first is None or first.step is None:
        return f"parts over {counted(count)}: {first.quantity if first else 'nothing was compared'}"
    return f"parts at step {first.step + 1}: {first.quantity}"


def verdict_line(verdict: Verdict) -> str:
    """Return the verdict in one line, that on its continuation where the rest is good."""
    comparison, resumed = verdict.comparison, verdict.resumed
    is_good = comparison.agrees and resumed is not None and not verdict.agrees
    return resume_line(resumed) if is_good and resumed is not None else headline(comparison)


def plain(lines: Iterable[tuple[tuple[str, str], ...]]) -> Iterator[str]:
    """Yield lines without their styles."""
    yield from ("".join(piece for piece, _ in line) for line in lines)


def difference(found: Difference, of: str = "conversion") -> str:
    """Return a difference in one line; ``of`` is the second of the two runs."""
    told = values(found)
    where = "in the end" if found.step is None else f"at step {found.step + 1}"
    if found.quantity == "weights":
        return f"weights {where}: {exponent(found.error)}, allowed {exponent(found.allowed)} ({found.detail})"
    if found.quantity == "inputs":
        apart = f"{exponent(found.error)} apart" if math.isfinite(found.error) else "others"
        return f"inputs {where}: those of the {of} are {apart}"
    said = f"{told[0]} in the original, {told[1]} in the {of}"
    apart = f" ({exponent(found.error)}, allowed {exponent(found.allowed)})" if math.isfinite(found.error) else ""
    return f"{found.quantity} {where}: {said}{apart}"


def noise(comparison: Comparison) -> tuple[str, ...]:
    """Return what a second run of the original has shown, if there was one."""
    found = comparison.noise
    if not found.steps:
        return ()
    over = f"trained again for {counted(found.steps)}, the original"
    if found.is_silent:
        return (f"{over} is the same bit by bit: the difference is not noise",)
    if not found.differences:
        worst = max(max(errors, default=0.0) for errors in found.errors.values())
        return (f"{over} repeats itself to {exponent(worst)}: ten times that is allowed of each quantity",)
    first = difference(found.differences[0], "second run")
    return (f"{over} parts from itself: {first}", found.reason)


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


def ranked(causes: tuple[Cause, ...]) -> Iterator[str]:
    """Yield the word before each cause: one may be there besides another, or in the place of it."""
    for index, cause in enumerate(causes):
        before = causes[:index]
        said = "cause" if cause.certain else "likely cause"
        if not before:
            yield said
        elif cause.certain or all(cause.quantity != one.quantity for one in before):
            yield f"and a {said}"
        else:
            yield "or"


def values(found: Difference) -> tuple[str, str]:
    """Return the two values of a difference, which can be told apart as they are written."""
    if found.original is None and found.converted is None:  # inputs have no number of their own
        return "", ""
    pair = number(found.original), number(found.converted)
    if pair[0] != pair[1]:
        return pair
    before, after = (
        value if isinstance(value, (tuple, list)) else (value,) for value in (found.original, found.converted)
    )
    for one, other in zip(before, after, strict=False):
        if isinstance(one, float) and isinstance(other, float) and one != other:
            return told_apart(one, other)
    return repr(found.original), repr(found.converted)


def number(value: object) -> str:
    """Return a value for people."""
    if isinstance(value, (tuple, list)):
        return ", ".join(dict.fromkeys(map(number, value))) or "none"
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value) and abs(value) < 1e6
        return f"{value:.0f}" if whole else f"{value:.7g}"
    return "none" if value is None else str(value)


def exponent(value: float) -> str:
    """Return a relative difference."""
    return "0" if value == 0 else f"{value:.1e}"


AROUND = 2
COLUMNS = ("loss", "gradient norm", "learning rate", "samples")
"""What the table of the steps shows, of both runs."""


@dataclass(frozen=True, slots=True)
class Row:
    """The steps that both runs have taken in one line; ``cells`` are pairs, those of the original first."""

    step: int
    is_first: bool
    cells: tuple[tuple[str, str], ...]


def rows(comparison: Comparison) -> Iterator[Row]:
    """Yield the steps around the first difference, the last ones where it is of the whole run."""
    pairs = list(zip(comparison.original.steps, comparison.converted.steps, strict=False))
    first = comparison.first
    middle = len(pairs) - 1 if first is None or first.step is None else first.step
    for before, after in pairs[max(middle - AROUND, 0) : middle + AROUND + 1]:
        rates = tuple(step.rates[0] if step.rates else None for step in (before, after))
        parted = {one.quantity for one in comparison.differences if one.step == before.index}
        cells = (
            _cells(before.loss, after.loss, parts="loss" in parted),
            _cells(before.norm, after.norm, parts="gradient norm" in parted),
            _cells(*rates, parts="learning rate" in parted),
            (str(before.samples), str(after.samples)),
        )
        yield Row(before.index + 1, before.index == middle, cells)


def _cells(before: float | None, after: float | None, *, parts: bool) -> tuple[str, str]:
    if parts and before is not None and after is not None:
        return told_apart(before, after, 5)
    return ("-" if before is None else f"{before:.5g}"), ("-" if after is None else f"{after:.5g}")


def overhead(comparison: Comparison) -> str:
    """Return what a step takes, and what of it is the harness."""
    parts = [
        f"{run_name} {run.seconds * 1e3:.1f} ms, of which {run.overhead * 1e3:.1f} ms measuring"
        for run_name, run in (("original", comparison.original), ("conversion", comparison.converted))
        if run.steps
    ]
    return f"per step: {'; '.join(parts)}"
