"""How a text is laid out: line ends, indents, commas, quotes. Edits follow it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque

from dsmigrate.document.nodes import Array, Node, Object
from dsmigrate.document.positions import LineIndex

_DEFAULT_INDENT = "    "
_BLANKS = re.compile(r"[ \t]*")
_FIRST = re.compile("[ \t\ufeff]*\\Z")
_NEWLINES = ("\n", "\r\n", "\r")


def newline_of(text: str) -> str:
    """Return the line end that most lines of ``text`` use; a line feed when there is none."""
    pairs = text.count("\r\n")
    counts = {"\r\n": pairs, "\n": text.count("\n") - pairs, "\r": text.count("\r") - pairs}
    best = max(_NEWLINES, key=lambda style: counts[style])
    return best if counts[best] else "\n"


def line_start(text: str, offset: int) -> int:
    """Return the offset of the start of the line that ``offset`` lies in.

    The lines of a text are found once: looking back from each of many places on one line takes time with their square.
    """
    starts = _lines(text).starts
    return starts[bisect_right(starts, offset) - 1]


def line_end(text: str, offset: int) -> int:
    """Return the offset of the line end at or behind ``offset``, or the end of the text."""
    lines = _lines(text)
    return max(offset, lines.line_range(lines.line_of(offset))[1])


_KEPT = deque[LineIndex](maxlen=4)


def _lines(text: str) -> LineIndex:
    """Return the lines of a text, kept for those that were asked about last; by identity, as texts are long."""
    for lines in list(_KEPT):
        if lines.text is text:
            return lines
    made = LineIndex(text)
    _KEPT.appendleft(made)
    return made


def line_indent(text: str, offset: int) -> str:
    """Return the blanks that the line of ``offset`` starts with."""
    found = _BLANKS.match(text, line_start(text, offset))
    return found[0] if found else ""


def starts_line(text: str, offset: int) -> bool:
    """Tell whether nothing but blanks stands before ``offset`` on its line."""
    return _FIRST.match(text, line_start(text, offset), offset) is not None


def has_line_end(text: str, start: int, end: int) -> bool:
    """Tell whether there is a line end between two offsets."""
    return text.find("\n", start, end) >= 0 or text.find("\r", start, end) >= 0


def indent_of(root: Node | None, text: str) -> str:
    """Return what a level is indented by: in the first container with a child on a line of its own."""
    waiting: list[Node] = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Object | Array):
            continue
        inner: list[Node] = []
        for child in node:
            outer = line_indent(text, node.start) if not isinstance(node, Object) or node.has_braces else None
            own = line_indent(text, child.start)
            if outer is not None and starts_line(text, child.start) and own != outer and own.startswith(outer):
                return own[len(outer) :]
            value = child if isinstance(child, Object | Array) else getattr(child, "node", None)
            if isinstance(value, Object | Array):
                inner.append(value)
        waiting.extend(reversed(inner))
    return _DEFAULT_INDENT
