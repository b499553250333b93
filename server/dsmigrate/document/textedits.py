"""Edits of a text: what to replace by what, and how to apply and combine them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsmigrate.document.errors import EditError


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """Replace the code points from ``start`` to before ``end`` by ``text``."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """Return ``text`` with all edits made, whose offsets are those of ``text`` as it is.

    Insertions at one offset keep their order. Raises EditError for edits that overlap or lie outside of the text.
    """
    parts: list[str] = []
    pos = 0
    for edit in in_order(text, edits):
        parts += (text[pos : edit.start], edit.text)
        pos = edit.end
    parts.append(text[pos:])
    return "".join(parts)


def in_order(text: str, edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Return the edits by their place; raises EditError as ``apply`` does."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    pos = 0
    for edit in ordered:
        if not edit.start <= edit.end <= len(text) or edit.start < 0:
            raise EditError(f"{edit.start} to {edit.end} is no range of a text of {len(text)} code points")
        if edit.start < pos:
            raise EditError(f"two edits overlap at {edit.start}")
        pos = edit.end
    return ordered


def merged(text: str, edits: Iterable[TextEdit]) -> tuple[TextEdit, ...]:
    """Return the edits by their place, those that touch as one; raises EditError as ``apply`` does."""
    result: list[TextEdit] = []
    for edit in in_order(text, edits):
        if result and result[-1].end == edit.start:
            last = result.pop()
            result.append(TextEdit(last.start, edit.end, last.text + edit.text))
        else:
            result.append(edit)
    return tuple(result)


def compose(text: str, first: Sequence[TextEdit], second: Sequence[TextEdit]) -> tuple[TextEdit, ...]:
    """Return edits of ``text`` that do what ``first`` does, and then ``second`` to the result."""
    pieces = _cut(_cut([(0, len(text), None)], in_order(text, first)), in_order(apply(text, first), second))
    edits: list[TextEdit] = []
    pos, inserted = 0, ""
    for start, end, new in [*pieces, (len(text), len(text), None)]:
        if new is not None:
            inserted += new
            continue
        if start > pos or inserted:
            edits.append(TextEdit(pos, start, inserted))
        pos, inserted = end, ""
    return tuple(edits)


_Piece = tuple[int, int, str | None]
"""Some of the result: a range of the original that was kept, or (with any range) a text that was inserted."""


def _cut(pieces: list[_Piece], edits: Iterable[TextEdit]) -> list[_Piece]:
    """Apply edits, whose offsets are those of the text that ``pieces`` add up to."""
    result: list[_Piece] = []
    waiting = list(reversed(pieces))
    pos = 0
    for edit in edits:
        pos = _take(waiting, edit.start - pos, result) + pos
        pos = _take(waiting, edit.end - pos, None) + pos
        result.append((0, 0, edit.text))
    result.extend(reversed(waiting))
    return [piece for piece in result if piece[2] or (piece[2] is None and piece[0] < piece[1])]


def _take(waiting: list[_Piece], width: int, into: list[_Piece] | None) -> int:
    """Move the next ``width`` code points from ``waiting`` to ``into``; return the width."""
    left = width
    while left:
        start, end, new = waiting.pop()
        size = end - start if new is None else len(new)
        if size > left:
            rest: _Piece = (start + left, end, None) if new is None else (0, 0, new[left:])
            waiting.append(rest)
            start, end, new = (start, start + left, None) if new is None else (0, 0, new[:left])
            size = left
        if into is not None:
            into.append((start, end, new))
        left -= size
    return width
