"""The findings of the rules on both sides, by what they are about."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.pair import Pair
from dsmigrate.diff.side import Side
from dsmigrate.document import Path
from dsmigrate.rules import Effect, Finding, Severity

REJECTS = frozenset({Effect.REJECTED, Effect.CRASH})
"""The effects of findings with which nothing trains to the end."""
_KNOWN_BUG = "DS970"


def rejects(finding: Finding) -> bool:
    """Return whether nothing trains with a finding, for certain."""
    return finding.effect in REJECTS and finding.severity is Severity.ERROR


def only(side: Side, other: Side) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of a side that the other one has not, with the canonical path of the key they are about.

    Two findings of one rule about one key with one effect are one, whatever numbers they name; so are two that say the
    same, wherever they point. Hints are left to editors.
    """
    there: set[object] = {_about(other, finding) for finding in other.view.findings}
    there |= {(finding.code, finding.message) for finding in other.view.findings}
    told = set()
    for finding in side.view.findings:
        about = _about(side, finding)
        if finding.severity is Severity.HINT or about in told or (finding.code, finding.message) in there:
            continue
        if about not in there:
            told.add(about)
            yield about[1], finding


def both(side: Side, other: Side) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of a side with which nothing trains, for certain, and which the other side has as well."""
    there = {_about(other, finding) for finding in other.view.findings}
    for finding in side.view.findings:
        if rejects(finding) and _about(side, finding) in there:
            yield side.path_of(finding.path), finding


def _about(side: Side, finding: Finding) -> tuple[str, str, Effect]:
    return finding.code, side.path_of(finding.path), finding.effect


def at(side: Side, path: Path, *effects: Effect) -> Finding | None:
    """Return the first finding about a member with one of the effects, by the path of nodes."""
    return next((found for found in side.findings_at.get(path, ()) if found.effect in effects), None)


def is_of_releases(pair: Pair, finding: Finding) -> bool:
    """Return whether a finding is a bug of one of two releases, which an explanation of its own tells."""
    return finding.code == _KNOWN_BUG and pair.old.known.version != pair.new.known.version


def matters(pair: Pair, path: str, finding: Finding) -> bool:
    """Return whether a finding that comes or goes says more than the change of a key itself.

    What stops DeepSpeed for certain always does. What is only ignored is told where the key is; anything else counts
    where something else acts.
    """
    acts = pair.acts or pair.has_untold
    if finding.effect in REJECTS and (finding.severity is Severity.ERROR or acts):
        return True
    if not acts:
        return False
    if finding.effect in {Effect.IGNORED, Effect.CHANGED}:
        return False
    change = pair.changes.get(path)
    return change is None or pair.change(path) is not None
