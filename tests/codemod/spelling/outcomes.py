"""What a conversion comes to, without its text: the same for every spelling of a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Kind, Options

from .rewritings import Files

Read = Callable[[str], "bytes | None"]


def outcome(read: Read, entry: str, text: str | None = None, files: Files | None = None) -> dict[str, Any]:
    """Status, todos, refusals, differences and config of a conversion, of another spelling of the entry if given."""
    folder = entry.rpartition("/")[0]
    beside = {f"{folder}/{name}" if folder else name: made.encode() for name, made in (files or {}).items()}
    if text is not None:
        beside[entry] = text.encode()

    def found(path: str) -> bytes | None:
        return beside[path] if path in beside else read(path)

    made = convert(found, entry, Options())
    changes = [change for result in made.results.values() for change in result.changes]
    notes = {note.code for result in made.results.values() for note in result.notes}
    return {
        "status": made.results[entry].status.value,
        "todos": dict(Counter(change.code for change in changes if change.kind is Kind.TODO)),
        "refused": sorted({change.code for change in changes if change.kind is Kind.REFUSED}),
        "differs": sorted(notes),
        "config": next((result.config for result in made.results.values() if result.config is not None), None),
        "parts": sorted(made.compat.parts) if made.compat else [],
    }


def apart(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """In which ways two outcomes are not the same."""
    return [f"{key}: {one[key]} / {other[key]}" for key in one if one[key] != other[key]]
