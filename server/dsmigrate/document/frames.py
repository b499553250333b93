"""What the parser has in hand while it reads: the open containers, and the shapes they are becoming."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dsmigrate.document.problems import CRASHES, FATAL, Code
from dsmigrate.document.shapes import ABSENT, ContainerShape, MemberShape, Note, ScalarShape, ValueShape

_BLANKS = re.compile(r"[ \t\n\r]*")
_REST = re.compile(r"[^\r\n]*")


Kept = Mapping[int, ContainerShape]
"""Containers by the offset of their bracket, of which it is known what they will be read as."""
NOTHING: Kept = {}


class Outer(NamedTuple):
    """What waits for an inner container to end: the container around it, and the member it is the value of."""

    node: ContainerShape
    base: int
    key: ScalarShape | None
    member_at: int
    colon: int


class Frames:
    """The state of reading one text, and the steps that change it.

    ``kept`` saves reading containers again that an edit has not touched. ``cut`` chooses between the two readings of a
    quoteless string that looks like a value being typed (see ``words.quoteless``). Afterwards ``suspicious`` says
    whether there was one, ``multiline`` whether there was a ''' string (whose value depends on its column, and on the
    first line on the end of the text), ``escaped`` whether a closing bracket belonged to a container outside of
    ``text``, ``fatal`` and ``crash`` whether the loader raises, and whether it first raises something other than
    HjsonDecodeError.
    """

    __slots__ = (
        "base",
        "colon",
        "crash",
        "cut",
        "ends",
        "escaped",
        "fatal",
        "kept",
        "key",
        "last_line",
        "line",
        "member_at",
        "multiline",
        "node",
        "open",
        "pending",
        "pos",
        "scalars",
        "searched",
        "stack",
        "suspicious",
        "text",
        "top",
    )

    def __init__(self, text: str, *, cut: bool, kept: Kept = NOTHING) -> None:
        self.text = text
        self.cut = cut
        self.kept = kept
        self.pos = 0
        self.top = ContainerShape(is_object=False, braces=False)
        self.node = self.top
        self.base = 0
        self.stack: list[Outer] = []
        self.open = [0, 0]  # arrays, objects: closing brackets that find none waiting need not search the stack
        self.key: ScalarShape | None = None
        self.member_at = 0
        self.colon = ABSENT
        self.pending = False  # a child has been read and no comma after it
        self.scalars: dict[str, ScalarShape] = {}
        self.line = self.searched = 0  # the start of the line that was last asked for, and how far it was searched
        self.last_line = self.ends = -1
        self.suspicious = self.multiline = self.escaped = self.fatal = self.crash = False

    def skip(self, pos: int) -> int:
        """Return where the blanks and comments at ``pos`` end; the comments go to the container in hand."""
        text = self.text
        while True:
            found = _BLANKS.match(text, pos)
            if found:
                pos = found.end()
            end = self.comment_end(pos)
            if end == pos:
                return pos
            if end < 0:
                end = len(text)
                self.note(Code.UNTERMINATED_COMMENT, pos, end)
            self.node.comments.append((pos - self.base, end - self.base))
            self.node.noted = True
            pos = end

    def note(self, code: Code, start: int, end: int) -> None:
        """Note a problem at these offsets of the text."""
        self.node.notes.append((code, start - self.base, end - self.base))
        self.node.noted = True
        if code in FATAL and not self.fatal:
            self.fatal = True
            self.crash = code in CRASHES

    def comment_end(self, pos: int) -> int:
        """Return the end of the comment at ``pos``, ``pos`` where there is none, -1 where it does not end."""
        text = self.text
        mark = text[pos : pos + 2]
        if mark[:1] == "#" or mark == "//":
            found = _REST.match(text, pos)
            return found.end() if found else pos
        if mark == "/*":
            end = text.find("*/", pos + 2)
            return end + 2 if end >= 0 else -1
        return pos

    def line_end(self, pos: int) -> int:
        """Return where the line of ``pos`` ends; calls have to come in the order of the text."""
        if pos > self.ends:
            found = _REST.match(self.text, pos)
            self.ends = found.end() if found else pos
        return self.ends

    def column(self, pos: int) -> int | None:
        """Return the column of ``pos`` as hjson counts it; calls have to come in the order of the text.

        On the first line hjson counts on from the end of the text (a negative index): the column grows by the length
        of the last line, and in a text without line ends the loader fails, which is None.
        """
        text = self.text
        line = max(text.rfind("\n", self.searched, pos), text.rfind("\r", self.searched, pos)) + 1
        self.line = line or self.line
        self.searched = pos
        if self.line:
            return pos - self.line
        if self.last_line < 0:
            self.last_line = max(text.rfind("\n"), text.rfind("\r")) + 1
        return pos + len(text) - self.last_line if self.last_line else None

    def begin(self, pos: int, *, braces: bool) -> None:
        """Take a new container in hand, the one whose bracket (or, without braces, first member) is at ``pos``.

        One that is kept is added as it is, and the one around it stays in hand.
        """
        kept = self.kept.get(pos) if braces else None
        if kept is not None:
            self.node.height = max(self.node.height, kept.height + 1)
            self.pos = pos + kept.width
            self.add(kept, pos)
            return
        is_object = not braces or self.text[pos] == "{"
        self.stack.append(Outer(self.node, self.base, self.key, self.member_at, self.colon))
        self.node = ContainerShape(is_object=is_object, braces=braces)
        self.base = pos
        self.pos = pos + braces
        self.pending = False
        self.open[is_object] += braces

    def end(self, end: int, *, closed: bool) -> None:
        """End the container in hand before ``end`` and go on with the one around it."""
        node, start = self.node, self.base
        node.width = end - start
        node.closed = closed
        if node.is_object and len(node.children) > 1:
            self._find_duplicates()
        self.open[node.is_object] -= node.braces
        outer, self.base, self.key, self.member_at, self.colon = self.stack.pop()
        self.node = outer
        outer.noted = outer.noted or node.noted
        if outer.height <= node.height:
            outer.height = node.height + 1
        self.pos = end
        self.add(node, start)

    def _find_duplicates(self) -> None:
        members = [child for child in self.node.children if isinstance(child, MemberShape)]
        names = [member.key.value for member in members if member.key is not None]
        if len(set(names)) == len(names):
            return
        seen = set()
        for start, member in zip(self.node.starts, members, strict=True):
            if member.key is None:
                continue
            if member.key.value in seen:
                self.note(Code.DUPLICATE_KEY, self.base + start, self.base + start + member.key.width)
            seen.add(member.key.value)

    def add(self, value: ValueShape | None, start: int) -> None:
        """Add a value that starts at ``start``, or none, as a child: in an object as the member that was begun."""
        node = self.node
        if node.is_object:
            at = self.member_at
            colon = ABSENT if self.colon == ABSENT else self.colon - at
            node.starts.append(at - self.base)
            node.children.append(MemberShape(self.key, colon, ABSENT if value is None else start - at, value))
        else:
            if value is None:
                return
            node.starts.append(start - self.base)
            node.children.append(value)
        node.commas.append(ABSENT)
        self.pending = True

    def last_end(self) -> int:
        """Return where the last child of the container in hand ends."""
        child = self.node.children[-1]
        return self.base + self.node.starts[-1] + child.width

    def unclosed(self) -> None:
        """Note that the container in hand has no closing bracket."""
        self.note(Code.UNCLOSED, self.base, self.base + 1)

    def note_all(self, notes: list[Note]) -> None:
        """Note problems at offsets of the text."""
        for code, start, end in notes:
            self.note(code, start, end)
