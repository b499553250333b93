"""For the terminal: the verdict first, then where and why, then the steps around it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.verify.failures import first_failure
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Cause, Comparison, Resumed, Verdict, Verification

Line = tuple[tuple[str, str], ...]
_COLOURS = {"agrees": "bold green", "unrepeatable": "bold yellow"}
_DIFFERENCES = 4


def render(verification: Verification) -> Iterator[Line]:
    """Yield lines of (text, style)."""
    for verdict in verification.verdicts:
        yield from of_verdict(verification, verdict)
    if verification.original_resumed is not None:
        yield from _resumed("the original, ", verification.original_resumed)
    if verification.kept is not None:
        yield ((f"records, output and copies: {verification.kept}", "dim"),)


def of_verdict(verification: Verification, verdict: Verdict) -> Iterator[Line]:
    """Yield everything of one stage, the verdict first."""
    comparison = verdict.comparison
    colour = _COLOURS.get(words.status(comparison), "bold red")
    yield ((words.title(verification, verdict), "bold"), (": ", ""), (words.headline(comparison), colour))
    for difference in comparison.differences[:_DIFFERENCES]:
        yield ((f"  {words.difference(difference)}", ""),)
    more = len(comparison.differences) - _DIFFERENCES
    if more > 0:
        yield ((f"  and {more} more", "dim"),)
    if comparison.differences and comparison.converted.steps:
        yield from _table(comparison)
    yield from rest(verdict)


def rest(verdict: Verdict) -> Iterator[Line]:
    """Yield what follows headline and differences: noise, failure, causes, notes, resuming, cost."""
    comparison = verdict.comparison
    found = words.status(comparison)
    yield from (((f"  {line}", ""),) for line in words.noise(comparison))
    yield from failure(comparison)
    yield from _causes(comparison.causes, is_needed=found == "parts" or not comparison.converted.is_complete)
    worst = [f"{name} {words.exponent(comparison.worst[name])}" for name in words.SHOWN if name in comparison.worst]
    if worst and found == "agrees":
        yield ((f"  largest relative differences: {', '.join(worst)}", ""),)
    for note in comparison.notes:
        yield ((f"  note: {note}", "dim"),)
    if verdict.resumed is not None:
        yield from _resumed("  ", verdict.resumed)
    if comparison.converted.steps:
        yield ((f"  {words.overhead(comparison)}", "dim"),)


def failure(comparison: Comparison) -> Iterator[Line]:
    """Yield how a conversion ended that did not end well: what failed first, and the last lines of all."""
    run = comparison.converted
    if run.is_complete:
        return
    first = first_failure(run)
    if first is not None:
        who = "" if first.rank is None else f"rank {first.rank}: "
        yield ((f"  {who}{first.said}", "red"),)
        if first.at:
            yield ((f"  at {first.at}", ""),)
    yield ((f"  $ {run.outcome.command}", "dim"),)
    tails = sorted(enumerate(run.outcome.tails), key=lambda one: first is None or one[0] != first.rank)
    for index, tail in tails:
        yield ((f"  last lines of process {index}:", "dim"),)
        yield from (((f"    {line}", ""),) for line in tail.splitlines())


def _causes(causes: tuple[Cause, ...], *, is_needed: bool) -> Iterator[Line]:
    if not causes and is_needed:
        yield (("  no known cause fits; --keep leaves all records for a look", "yellow"),)
    for cause, said in zip(causes, words.ranked(causes), strict=True):
        yield ((f"  {said}: {cause.title}", "yellow"), (f" [{cause.id}]", "dim"))
        yield ((f"    {cause.why}", ""),)
        yield ((f"    → {cause.advice}", ""),)


def _table(comparison: Comparison) -> Iterator[Line]:
    yield ((f"  {'':>5}" + "".join(f"  {name:>24}" for name in words.COLUMNS), "dim"),)
    yield ((f"  {'step':>5}" + f"  {'original':>11}  {'conversion':>11}" * len(words.COLUMNS), "dim"),)
    for row in words.rows(comparison):
        cells = "".join(f"  {before:>11}  {after:>11}" for before, after in row.cells)
        yield ((f"  {row.step:>5}{cells}", "bold" if row.is_first else ""),)


def _resumed(prefix: str, resumed: Resumed) -> Iterator[Line]:
    yield ((f"{prefix}{words.resume_line(resumed)}", "green" if resumed.agrees else "red"),)
    if resumed.comparison is not None and not resumed.agrees:
        yield from failure(resumed.comparison)
        yield from _causes(resumed.comparison.causes, is_needed=True)
