"""What happened to a key over the releases: its spans, from which its facts at one release and its history follow."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsmigrate.knowledge.versions import order

Record = Mapping[str, Any]


class _Missing(enum.Enum):
    MISSING = "missing"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing.MISSING
"""There is no default: the key must be given, or nothing happens without it."""


class Status(str, enum.Enum):
    """What a release does with a key."""

    PRESENT = "present"
    DEPRECATED = "deprecated"
    NOT_YET = "not yet"
    """A later release began to read it."""
    NO_LONGER = "no longer"
    """An earlier release read it; this one does not."""
    REJECTED = "rejected"
    """An earlier release read it; this one refuses a config that holds it."""


class EventKind(str, enum.Enum):
    """What happened to a key in a release."""

    ADDED = "added"
    REMOVED = "removed"
    REJECTED = "rejected"
    DEFAULT = "default"
    TYPE = "type"
    RANGE = "range"
    VALUES = "values"
    DEPRECATED = "deprecated"
    CHECKED = "checked"
    """Its section began (or stopped) to reject unknown keys."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a key in a release, with what it was and what it became."""

    version: str
    kind: EventKind
    old: object = None
    new: object = None


def facts_at(record: Record, version: str) -> Record:
    """Return the facts of a record at a release: those of the last span that had begun, else of the first."""
    wanted = order(version)
    spans = record["spans"]
    current = spans[0]
    for span in spans[1:]:
        if order(span["from"]) > wanted:
            break
        if not is_gone(span):
            current = span
    return current if isinstance(current, dict) else dict(current)


def status_at(record: Record, version: str) -> Status:
    """Return what a release does with the key of a record, its sections aside."""
    wanted = order(version)
    begun = [span for span in record["spans"] if order(span["from"]) <= wanted]
    if not begun:
        return Status.NOT_YET
    last = begun[-1]
    if last.get("rejected"):
        return Status.REJECTED
    if last.get("absent"):
        return Status.NO_LONGER if any(not is_gone(span) for span in begun) else Status.NOT_YET
    return Status.DEPRECATED if last.get("deprecated") else Status.PRESENT


def events(spans: Sequence[Record]) -> list[Event]:
    """Return the changes between the spans of a key, the first of which is that it was added."""
    found: list[Event] = []
    before: Record | None = None
    for span in spans:
        version = span["from"]
        if span.get("rejected"):
            found.append(Event(version, EventKind.REJECTED))
        elif span.get("absent"):
            found.append(Event(version, EventKind.REMOVED))
        elif before is None:
            found.append(Event(version, EventKind.ADDED, None, span.get("default", MISSING)))
            if span.get("deprecated"):
                found.append(Event(version, EventKind.DEPRECATED, None, tuple(span.get("replaced_by") or ())))
        else:
            found += _changes(version, before, span)
        before = None if is_gone(span) else span
    return found


_RANGE = ("minimum", "exclusive_minimum", "maximum", "exclusive_maximum")


def _changes(version: str, before: Record, after: Record) -> list[Event]:
    found = []
    pairs = (
        (EventKind.DEFAULT, before.get("default", MISSING), after.get("default", MISSING)),
        (EventKind.TYPE, tuple(before.get("type", ())), tuple(after.get("type", ()))),
        (EventKind.VALUES, tuple(before.get("enum", ())), tuple(after.get("enum", ()))),
        (EventKind.RANGE, _range(before), _range(after)),
        (EventKind.CHECKED, before.get("unknown_keys"), after.get("unknown_keys")),
    )
    for kind, old, new in pairs:
        if old != new or type(old) is not type(new):
            found.append(Event(version, kind, old, new))
    if after.get("deprecated") and not before.get("deprecated"):
        found.append(Event(version, EventKind.DEPRECATED, None, tuple(after.get("replaced_by") or ())))
    return found


def _range(facts: Record) -> Mapping[str, float]:
    return {bound: facts[bound] for bound in _RANGE if bound in facts}


def is_gone(span: Record) -> bool:
    """Tell whether releases of a span do not read the key."""
    return bool(span.get("absent") or span.get("rejected"))
