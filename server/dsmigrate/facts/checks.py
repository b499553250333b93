"""What every documented key must have, so that hover and pages read alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsmigrate.facts.compile import Records, every, newest
from dsmigrate.knowledge.wording import value_name

LONGEST_SUMMARY = 120
TYPES = frozenset({"boolean", "integer", "number", "string", "array", "object", "null"})
AUTO = frozenset({"string", "default", "config-error", "engine-error", "value"})
AFFECTS = frozenset({"numerics", "memory", "communication", "speed", "checkpoint", "validity", "observability", "none"})
ELEMENTS = frozenset({"weights", "sums", "communication", "masters", "activations"})
_OPENINGS = ("this option", "whether to", "this key", "a boolean", "boolean ")


def problems(found: Mapping[str, Records]) -> list[str]:
    """Return what is wrong with the records, a line each."""
    known = {path for _, path, _ in every(found)}
    return [f"{path}: {problem}" for _, path, record in every(found) for problem in _of(record, known)]


def _of(record: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    yield from _text(record)
    facts = newest(record["spans"]) or next(span for span in record["spans"] if "absent" not in span)
    if "type" not in facts:
        yield "no type"
    elif not set(facts["type"]) <= TYPES:
        yield f"unknown type {facts['type']}"
    if "array" in facts.get("type", ()) and "items" not in facts and not record.get("section"):
        yield "a list without `items`"
    conditions = record.get("required") if isinstance(record.get("required"), Mapping) else ()
    named = (*record.get("related", ()), *record.get("effective_when", ()), *record.get("successor", ()))
    alternatives = (path for conditions in record.get("effective_when_any", ()) for path in conditions)
    for other in (*named, *(conditions or ()), *alternatives):
        if other not in known and not other.startswith(("optimizer.", "scheduler.")):
            yield f"refers to {other}, which is no key"
    if record.get("auto", "string") not in AUTO:
        yield f"unknown auto {record['auto']}"
    yield from _affects(record)
    for memory in record.get("memory", ()):
        if memory.get("of") not in ELEMENTS or not memory.get("is"):
            yield f"memory of {memory.get('of')!r}"
        if not {memory[switch] for switch in ("needs", "twice", "times") if switch in memory} <= known:
            yield "memory that depends on what is no key"
    yield from _values(record, facts)
    living = newest(record["spans"])
    if living and ("enum" in living or "item_enum" in living) and not record.get("values"):
        yield "a closed list whose values are not explained"


def _affects(record: Mapping[str, Any]) -> Iterator[str]:
    affects = record.get("affects", ())
    if not affects or not set(affects) <= AFFECTS:
        yield f"affects {', '.join(affects) or 'nothing that is said'}"
    if ("none" in affects and len(affects) > 1) or ("none" not in affects and record.get("dead")):
        yield "affects something and nothing"


def _text(record: Mapping[str, Any]) -> Iterator[str]:
    summary = record.get("summary", "")
    if not summary:
        yield "no summary"
    if len(summary) > LONGEST_SUMMARY:
        yield f"a summary of {len(summary)} characters, at most {LONGEST_SUMMARY} are read at a glance"
    if summary.lower().startswith(_OPENINGS):
        yield f"a summary that opens with {summary[:15]!r}"
    if summary and not summary.endswith("."):
        yield "a summary that is no sentence"
    if not record.get("doc", "").strip():
        yield "no doc"
    elif record["doc"].strip() == summary:
        yield "a doc that repeats the summary"
    if not record.get("source"):
        yield "no source"


def _values(record: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    listed = facts.get("enum", facts.get("item_enum"))
    if listed is None or not record.get("values"):
        return
    spelled = {value_name(value) for value in listed}
    missing = spelled - record["values"].keys()
    if missing:
        yield f"values without a meaning: {', '.join(sorted(missing))}"
