"""Rates and tables of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsmigrate.knowledge import Knowledge
from dsmigrate.rules import Effect, Settings, every_rule

from .compare import BEYOND, DISAGREEMENTS, FALSE_ALARM, NOTES, UNJUDGED, Row

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Rates:
    """How many rejected configs have an error on the right key, and how many accepted ones a false "rejected"."""

    rejected: int
    found: int
    accepted: int
    false_alarms: int
    unjudged: int

    @property
    def found_share(self) -> float:
        """The share of rejected configs that the rules reject at the right place."""
        return self.found / max(1, self.rejected)

    def __str__(self) -> str:
        return (
            f"rejected by DeepSpeed {self.rejected}, with an error on the responsible key {self.found} "
            f"({self.found_share:.2%}); accepted {self.accepted}, called rejected {self.false_alarms} "
            f"({self.false_alarms / max(1, self.accepted):.2%}); cannot be judged here {self.unjudged}"
        )


def rates(rows: Sequence[Row]) -> Rates:
    """Return the two rates."""
    judged = [row for row in rows if row.outcome != UNJUDGED]
    rejected = [row for row in judged if row.answer.refused]
    accepted = [row for row in judged if not row.answer.refused]
    return Rates(
        len(rejected),
        sum(row.outcome not in DISAGREEMENTS for row in rejected),
        len(accepted),
        sum(row.outcome == FALSE_ALARM for row in accepted),
        len(rows) - len(judged),
    )


def by_kind(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line per kind of fault: configs, rejected, found, accepted, false alarms, unjudged."""
    titles = ("configs", "rejected", "found", "accepted", "false", "unjudged")
    yield f"{'planted alone':34} " + " ".join(f"{title:>9}" for title in titles)
    kinds = Counter(row.case.kinds for row in rows if len(row.case.planted) < 2)
    for kind in sorted(kinds):
        told = rates([row for row in rows if row.case.kinds == kind and len(row.case.planted) < 2])
        yield (
            f"{kind:34} {kinds[kind]:9} {told.rejected:9} {told.found:9} "
            f"{told.accepted:9} {told.false_alarms:9} {told.unjudged:9}"
        )


def never_met(known: Knowledge, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the keys that no fault was planted at, and the rules for plain DeepSpeed that found nothing."""
    planted = {known.canonical(path) for row in rows for fault in row.case.planted for path in fault.paths}
    steps = [[int(name) if name.isdigit() else name for name in path.split(".")] for path in planted]
    planted |= {known.canonical(path) for path in steps}
    found = {finding.code for row in rows for finding in row.findings}
    keys = [path for path in known.every_path() if path not in planted and known.canonical(path) not in planted]
    plain = Settings(version=known.version)
    rules = [rule.title for rule in every_rule() if rule.code not in found and plain.takes(rule)]
    yield f"keys without a fault: {', '.join(keys) or 'none'}"
    yield f"rules that found nothing: {', '.join(rules) or 'none'}"


def groups(rows: Sequence[Row], outcomes: Sequence[str]) -> list[tuple[Row, int]]:
    """Return the smallest row and the number of rows of each kind of difference, the commonest first."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.outcome in outcomes:
            found.setdefault((row.outcome, row.family, row.what), []).append(row)
    smallest = [min(those, key=lambda row: (len(row.case.planted), len(row.case.written))) for those in found.values()]
    return sorted(zip(smallest, map(len, found.values()), strict=True), key=lambda pair: -pair[1])


def differences(rows: Sequence[Row], *, notes: bool = True) -> Iterator[str]:
    """Yield the differences grouped, each with one example."""
    for row, count in groups(rows, (*DISAGREEMENTS, *(NOTES if notes else ()))):
        yield f"{count:5}  {row.outcome} [{row.family}]: {row.what[:WIDTH]}"
        yield f"       example {row.case.name}, {row.case.kinds}: DeepSpeed: {row.answer.error[:WIDTH] or 'accepted'}"
        told = [one for one in row.findings if one.severity.value == "error" or one.effect.value == "crash"]
        for one in told[:3]:
            path = ".".join(map(str, one.path))
            yield f"         {one.code} {one.severity.value}/{one.effect.value} {path}: {one.message[:WIDTH]}"


def unjudged(rows: Sequence[Row]) -> Iterator[str]:
    """Yield why configs cannot be judged here, with numbers and one example each."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.outcome == UNJUDGED:
            found.setdefault(row.answer.reason, []).append(row)
    for reason, those in sorted(found.items(), key=lambda pair: -len(pair[1])):
        yield f"{len(those):5}  {reason}: {those[0].answer.error[:WIDTH]}"


def beyond(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the crashes take that the judge does not come to, with numbers and the rules that claim them."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.outcome == BEYOND:
            found.setdefault(row.what, []).append(row)
    for what, those in sorted(found.items(), key=lambda pair: -len(pair[1])):
        codes = {one.code for row in those for one in row.findings if one.effect is Effect.CRASH}
        yield f"{len(those):5}  {what}: {', '.join(sorted(codes))}"
