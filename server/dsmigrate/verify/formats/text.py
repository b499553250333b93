"""For the terminal: the verdict first, then where and why, then the steps around it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Cause, Comparison, Resumed, Step, Verdict, Verification

Line = tuple[tuple[str, str], ...]
_COLOURS = {"agrees": "bold green", "parts": "bold red", "crashed": "bold red", "timed_out": "bold red"}
_AROUND = 2
_DIFFERENCES = 4


def render(verification: Verification) -> Iterator[Line]:
    """Yield lines of (text, style)."""
    for verdict in verification.verdicts:
        yield from _verdict(verification, verdict)
    if verification.original_resumed is not None:
        yield from _resumed("the original, ", verification.original_resumed)
    if verification.kept is not None:
        yield ((f"records, output and copies: {verification.kept}", "dim"),)


def _verdict(verification: Verification, verdict: Verdict) -> Iterator[Line]:
    comparison = verdict.comparison
    found = words.status(comparison)
    yield ((words.title(verification, verdict), "bold"), (": ", ""), (words.headline(comparison), _COLOURS[found]))
    for difference in comparison.differences[:_DIFFERENCES]:
        yield ((f"  {words.difference(difference)}", ""),)
    more = len(comparison.differences) - _DIFFERENCES
    if more > 0:
        yield ((f"  and {more} more", "dim"),)
    yield from _failure(comparison)
    yield from _causes(comparison.causes, is_needed=found != "agrees")
    if comparison.differences and comparison.converted.steps:
        yield from _table(comparison)
    worst = [f"{name} {words.exponent(comparison.worst[name])}" for name in words.SHOWN if name in comparison.worst]
    if worst and found == "agrees":
        yield ((f"  largest relative differences: {', '.join(worst)}", ""),)
    for note in comparison.notes:
        yield ((f"  note: {note}", "dim"),)
    if verdict.resumed is not None:
        yield from _resumed("  ", verdict.resumed)
    if comparison.converted.steps:
        yield ((f"  {words.overhead(comparison)}", "dim"),)


def _failure(comparison: Comparison) -> Iterator[Line]:
    run = comparison.converted
    if run.is_complete:
        return
    if run.crash:
        yield ((f"  {run.crash['type']}: {run.crash['message']}", "red"),)
        yield ((f"  at {run.crash['at']}", ""),)
    yield ((f"  $ {run.outcome.command}", "dim"),)
    for index, tail in enumerate(run.outcome.tails):
        yield ((f"  last lines of process {index}:", "dim"),)
        yield from (((f"    {line}", ""),) for line in tail.splitlines())


def _causes(causes: tuple[Cause, ...], *, is_needed: bool) -> Iterator[Line]:
    if not causes and is_needed:
        yield (("  no known cause fits; --keep leaves all records for a look", "yellow"),)
    for index, cause in enumerate(causes):
        said = "cause" if cause.certain else "likely cause"
        said = said if index == 0 else "or"
        yield ((f"  {said}: {cause.title}", "yellow"), (f" [{cause.id}]", "dim"))
        yield ((f"    {cause.why}", ""),)
        yield ((f"    → {cause.advice}", ""),)


def _table(comparison: Comparison) -> Iterator[Line]:
    pairs = list(zip(comparison.original.steps, comparison.converted.steps, strict=False))
    first = comparison.first
    middle = len(pairs) - 1 if first is None or first.step is None else first.step
    yield ((f"  {'step':>5}  {'loss':>22}  {'gradient norm':>22}  {'learning rate':>22}  {'samples':>11}", "dim"),)
    for before, after in pairs[max(middle - _AROUND, 0) : middle + _AROUND + 1]:
        style = "" if before.index != middle else "bold"
        yield ((f"  {before.index + 1:>5}  {_row(before, after)}", style),)


def _row(before: Step, after: Step) -> str:
    cells = (
        _cell(before.loss, after.loss),
        _cell(before.norm, after.norm),
        _cell(before.rates[0] if before.rates else None, after.rates[0] if after.rates else None),
    )
    return f"{'  '.join(f'{cell:>22}' for cell in cells)}  {f'{before.samples} {after.samples}':>11}"


def _cell(before: float | None, after: float | None) -> str:
    return " ".join("-" if value is None else f"{value:.5g}" for value in (before, after))


def _resumed(prefix: str, resumed: Resumed) -> Iterator[Line]:
    yield ((f"{prefix}{words.resume_line(resumed)}", "green" if resumed.agrees else "red"),)
    if resumed.comparison is not None and not resumed.agrees:
        yield from _failure(resumed.comparison)
        yield from _causes(resumed.comparison.causes, is_needed=True)
