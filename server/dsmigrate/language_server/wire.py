"""Answers as plain JSON data.

The protocol's own classes are converted field by field, which costs more than the answers themselves; dictionaries go
to ``json.dumps`` as they are. Names and shapes are those of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from dsmigrate.document import Encoding, LineIndex, Position, TextEdit

Data = dict[str, Any]
ENCODINGS: dict[object, Encoding] = {encoding.value: encoding for encoding in Encoding}


class Lines:
    """Offsets of one text to positions and back, in the units that the client counts."""

    __slots__ = ("encoding", "index")

    def __init__(self, index: LineIndex, encoding: Encoding) -> None:
        self.index = index
        self.encoding = encoding

    def position(self, offset: int) -> Data:
        """Return the position of an offset."""
        line, character = self.index.position(offset, self.encoding)
        return {"line": line, "character": character}

    def range(self, start: int, end: int) -> Data:
        """Return the range of two offsets."""
        return {"start": self.position(start), "end": self.position(end)}

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position, moved into the text where it lies outside."""
        return self.index.offset(Position(position.line, position.character), self.encoding)

    def offsets(self, span: types.Range) -> tuple[int, int]:
        """Return start and end of a range, in order also where the client has them the other way round."""
        start, end = self.offset(span.start), self.offset(span.end)
        return min(start, end), max(start, end)

    def edit(self, edit: TextEdit) -> Data:
        """Return an edit of the text."""
        return {"range": self.range(edit.start, edit.end), "newText": edit.text}

    def edits(self, edits: Iterable[TextEdit]) -> list[Data]:
        """Return edits of the text."""
        return [self.edit(edit) for edit in edits]


def encoding_of(kind: object) -> Encoding:
    """Return the encoding that was agreed on; UTF-16 where nothing was said."""
    return ENCODINGS.get(getattr(kind, "value", kind), Encoding.UTF16)
