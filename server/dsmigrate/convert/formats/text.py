"""For people: what was not carried over, what was decided, and what the rules say of the result."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.convert.job import Converted
from dsmigrate.convert.model import Kind, Note
from dsmigrate.document.positions import LineIndex
from dsmigrate.languages import mark, say

_TITLES = {
    Kind.LOST: mark("not carried over:"),
    Kind.CHANGED: mark("not the same:"),
    Kind.TOLD: mark("carried, with something to know:"),
}


def talk(converted: Converted, name: str) -> Iterator[str]:
    """Yield the lines for stderr; ``name`` is what the source is called."""
    lines = LineIndex(converted.read.text)
    for kind, title in _TITLES.items():
        found = [note for note in converted.notes if note.kind is kind]
        if found:
            yield say(title)
            yield from (f"  {where(note, lines, name)}[{note.code}] {note.message}" for note in found)
    if converted.findings:
        yield say("what the rules say of the result:")
        yield from (f"  {say(one.severity.value)}[{one.code}] {one.message}" for one in converted.findings)


def where(note: Note, lines: LineIndex, name: str) -> str:
    """Return ``file:line: `` of a note, "" where it has no place."""
    return "" if note.place is None else f"{name}:{lines.line_of(note.place.key_start) + 1}: "
