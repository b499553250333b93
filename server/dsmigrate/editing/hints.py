"""Inlay hints: what a config leaves unsaid, shown where it belongs and never where the text says it already."""

from __future__ import annotations

from dsmigrate.editing.inlay import absent, batch, values
from dsmigrate.editing.inlay.model import Hint, Kind
from dsmigrate.editing.view import View

__all__ = ["Hint", "Kind", "hints"]


def hints(view: View, start: int = 0, end: int | None = None) -> list[Hint]:
    """Return the hints from ``start`` to ``end``, both included, in the order of the text; of all of it by default."""
    if view.context.root is None:
        return []
    last = len(view.text) if end is None else end
    if view.overlaid:  # the end of a section, and a key without a field of its own, are nowhere in another form
        found = [hint for hint in values.hints(view, start, last) if hint.kind in {Kind.SIZE, Kind.INERT}]
        return sorted((hint for hint in found if start <= hint.offset <= last), key=lambda hint: hint.offset)
    found = [*batch.hints(view), *values.hints(view, start, last), *absent.hints(view, start, last)]
    return sorted((hint for hint in found if start <= hint.offset <= last), key=lambda hint: hint.offset)
