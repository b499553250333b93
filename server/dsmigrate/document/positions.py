"""Lines and characters, as the Language Server Protocol counts them, to offsets in code points and back.

Lines end with a line feed, a carriage return or both; everything is counted from zero.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")
_CHUNK = 1024


class Encoding(Enum):
    """What a character of a position is: a code unit of this encoding."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Position(NamedTuple):
    """A place in a text: ``line`` and ``character``, the latter in units of some ``Encoding``."""

    line: int
    character: int


class LineIndex:
    """The lines of one text, found when first asked for."""

    __slots__ = ("_counted", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None
        self._counted: dict[tuple[int, Encoding], list[int]] = {}

    @property
    def starts(self) -> list[int]:
        """The offset of the start of each line; a text has one line more than line ends."""
        if self._starts is None:
            text = self.text
            if "\r" in text:
                self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
            else:
                self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")[:-1]), initial=0))
        return self._starts

    def line_of(self, offset: int) -> int:
        """Return the number of the line that ``offset`` lies in; a line end belongs to the line it ends."""
        return bisect_right(self.starts, offset) - 1

    def line_range(self, line: int) -> tuple[int, int]:
        """Return start and end of a line, without its line end; raises IndexError for a line that is not there."""
        starts, text = self.starts, self.text
        start = starts[line]
        if line + 1 == len(starts):
            return start, len(text)
        end = starts[line + 1] - 1
        return start, end - (text[end] == "\n" and end > start and text[end - 1] == "\r")

    def position(self, offset: int, encoding: Encoding = Encoding.UTF16) -> Position:
        """Return the position of ``offset``, clamped to the text, and to the line's end within a line end."""
        offset = min(max(offset, 0), len(self.text))
        line = self.line_of(offset)
        start, end = self.line_range(line)
        return Position(line, self._units(start, end, min(offset, end), encoding))

    def offset(self, position: Position, encoding: Encoding = Encoding.UTF16) -> int:
        """Return the offset of ``position``.

        As the protocol has it, a character beyond the line's end means the line's end, and a line beyond the last the
        end of the text. A position within a character means its start.
        """
        if position.line < 0:
            return 0
        if position.line >= len(self.starts):
            return len(self.text)
        start, end = self.line_range(position.line)
        return self._advance(start, end, max(position.character, 0), encoding)

    def _units(self, start: int, end: int, offset: int, encoding: Encoding) -> int:
        """Return the units from the start of a line to an offset in it."""
        if offset - start <= _CHUNK or self.text.isascii():
            return _units(self.text, start, offset, encoding)
        pieces = (offset - start) // _CHUNK
        return self._pieces(start, end, encoding)[pieces] + _units(self.text, start + pieces * _CHUNK, offset, encoding)

    def _advance(self, start: int, end: int, units: int, encoding: Encoding) -> int:
        """Return the offset that is ``units`` behind the start of a line, at most its end."""
        if end - start > _CHUNK and not self.text.isascii():
            before = self._pieces(start, end, encoding)
            pieces = bisect_right(before, units) - 1
            start, units = start + pieces * _CHUNK, units - before[pieces]
        return _advance(self.text, start, end, units, encoding)

    def _pieces(self, start: int, end: int, encoding: Encoding) -> list[int]:
        """Return the units before each whole piece of a long line, counted once for all that is asked about it."""
        known = self._counted.get((start, encoding))
        if known is None:
            text, width = self.text, range(start, end - _CHUNK + 1, _CHUNK)
            counts = (_units(text, at, at + _CHUNK, encoding) for at in width)
            known = self._counted[start, encoding] = list(accumulate(counts, initial=0))
        return known


def _units(text: str, start: int, end: int, encoding: Encoding) -> int:
    if encoding is Encoding.UTF32 or text.isascii():
        return end - start
    part = text[start:end]
    if part.isascii():
        return end - start
    if encoding is Encoding.UTF8:
        return len(part.encode("utf-8", "surrogatepass"))
    return len(part.encode("utf-16-le", "surrogatepass")) // 2


def _advance(text: str, start: int, end: int, units: int, encoding: Encoding) -> int:
    """Return the offset that is ``units`` behind ``start``, at most ``end``."""
    if encoding is Encoding.UTF32 or text.isascii():
        return min(start + units, end)
    while start < end:
        units -= _width(text[start], encoding)
        if units < 0:
            break
        start += 1
    return start


def _width(char: str, encoding: Encoding) -> int:
    code = ord(char)
    if encoding is Encoding.UTF16:
        return 1 + (code > 0xFFFF)
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
