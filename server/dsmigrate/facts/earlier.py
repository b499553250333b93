"""Facts that changed from one release to another where no code states them: ``earlier`` in the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsmigrate.facts.sources import FactsError, Table
from dsmigrate.knowledge.versions import order

FIELDS = frozenset({"auto", "effective_when", "opened", "rejects_wrong_values", "required"})
"""Facts of a key as a whole that may have been others before a release; every fact of a span may have been, too."""


def split(spans: Sequence[Mapping[str, Any]], prose: Table) -> list[dict[str, Any]]:
    """Return the spans, cut where a release changed what the documentation says of a key.

    Raises FactsError when ``earlier`` does not say until when something held.
    """
    every: Sequence[Table] = prose.get("earlier", ())
    if any("until" not in one for one in every):
        raise FactsError("says in `earlier` what was different, and not until when")
    done = [dict(span) for span in spans]
    for until in sorted({one["until"] for one in every}, key=order):
        before = [index for index, span in enumerate(done) if order(span["from"]) < order(until)]
        if before and all(span["from"] != until for span in done) and not is_gone(done[before[-1]]):
            done.insert(before[-1] + 1, {**done[before[-1]], "from": until})
    return done


def at(prose: Table, version: str) -> dict[str, Any]:
    """Return the documentation as it was at a release."""
    done = dict(prose)
    for one in _before(prose, version):
        done = {name: value for name, value in done.items() if name not in one.get("none", ())}
        done |= {name: value for name, value in one.items() if name not in {"until", "none"}}
    return done


def moved(prose: Table, version: str) -> dict[str, Any]:
    """Return the facts of a key as a whole that were others at a release."""
    return {name: value for one in _before(prose, version) for name, value in one.items() if name in FIELDS}


def is_gone(span: Mapping[str, Any]) -> bool:
    """Return whether a span ends a key."""
    return bool(span.get("absent") or span.get("rejected"))


def _before(prose: Table, version: str) -> list[Table]:
    """Return what held at a release and no longer does, the latest to change first."""
    holding = [one for one in prose.get("earlier", ()) if order(version) < order(one["until"])]
    return sorted(holding, key=lambda one: order(one["until"]), reverse=True)
