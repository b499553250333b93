"""For programs: the contract of ``schemas/output/diff.schema.json``."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from dsmigrate.checking.formats.places import Span, span
from dsmigrate.diff.formats.places import place, url
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Change, Effect, Explained, Kind, Severity, Spot
from dsmigrate.document import Position, render_path
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING
from dsmigrate.rules.context import UNKNOWN

VERSION = 1


def render(compared: Compared) -> str:
    """Return the document of a comparison; lines and characters are zero-based, characters UTF-16 units as in LSP."""
    return json.dumps(document(compared), indent=2) + "\n"


def document(compared: Compared) -> dict[str, Any]:
    """Return the comparison as the contract has it."""
    return {
        "version": VERSION,
        "old": _side(compared.old_name, compared.old),
        "new": _side(compared.new_name, compared.new),
        "changes": [_explained(compared, said) for said in compared.result.explained],
        "edits": [_edit(compared, change) for change in compared.result.changes.values()],
        "summary": _summary(compared),
    }


def _side(name: str, view: View) -> dict[str, Any]:
    return {"path": name, "deepspeed_version": view.known.version, "consumer": view.consumer.value}


def _explained(compared: Compared, said: Explained) -> dict[str, Any]:
    change = compared.result.changes.get(said.paths[0])
    old, new = place(compared, said)
    return {
        "code": said.code,
        "path": said.paths[0],
        "paths": list(said.paths),
        "kind": (Kind.CHANGED if change is None else change.kind).value,
        "old": _written(compared.old, old, change, new=False),
        "new": _written(compared.new, new, change, new=True),
        "old_range": _range(compared.old, old),
        "new_range": _range(compared.new, new),
        "effects": [effect.value for effect in said.effects],
        "severity": said.severity.value,
        "message": said.message,
        "advice": said.advice or None,
        "url": url(said.code),
    }


def _edit(compared: Compared, change: Change) -> dict[str, Any]:
    return {
        "path": change.path,
        "kind": change.kind.value,
        "old_path": None if change.old_spot is None else render_path(change.old_spot.path),
        "new_path": None if change.new_spot is None else render_path(change.new_spot.path),
        "old": value(change.old),
        "new": value(change.new),
        "old_range": _range(compared.old, change.old_spot),
        "new_range": _range(compared.new, change.new_spot),
        "old_effective": value(change.old_meant),
        "new_effective": value(change.new_meant),
        "differs": change.differs,
    }


def _summary(compared: Compared) -> dict[str, Any]:
    result = compared.result
    effects = Counter(effect for said in result.explained for effect in said.effects)
    severities = Counter(said.severity for said in result.explained)
    return {
        "verdict": result.verdict,
        "same": result.is_same,
        "worst": result.worst.value,
        "edits": len(result.changes),
        "effects": {effect.value: effects[effect] for effect in Effect},
        "severities": {severity.value: severities[severity] for severity in Severity},
        "deepspeed_version_from": compared.why_version,
        "consumer_from": compared.why_consumer,
    }


def _written(view: View, spot: Spot | None, change: Change | None, *, new: bool) -> Any:  # noqa: ANN401 - any JSON
    if change is not None:
        return value(change.new if new else change.old)
    node = view.document.node_at(spot.path) if spot is not None else None
    return None if node is None else value(node.value())


def value(held: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a value as JSON has it: null for none, "auto" for what the consumer decides, a text for Infinity."""
    made: list[Any] = [held]
    waiting: list[tuple[Any, Any]] = [(made, 0)]
    while waiting:  # values nest deeper than calls may
        holder, place = waiting.pop()
        inner = holder[place] = _plain(holder[place])
        if isinstance(inner, dict | list):
            waiting += ((inner, key) for key in (inner if isinstance(inner, dict) else range(len(inner))))
    return made[0]


def _plain(held: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a value as JSON has it; what a list or an object holds stays as it is."""
    if held is MISSING:
        return None
    if held is UNKNOWN:
        return "auto"
    if isinstance(held, float) and not math.isfinite(held):
        return str(held)
    if isinstance(held, dict):
        return {str(name): inner for name, inner in held.items()}
    return list(held) if isinstance(held, list) else held


def _range(view: View, spot: Spot | None) -> dict[str, Any] | None:
    if spot is None:
        return None
    found: Span = span(view.document, spot.start, spot.end)
    return {"start": _position(found.start), "end": _position(found.end)}


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}
