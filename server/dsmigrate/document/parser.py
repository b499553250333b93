"""Text to shapes: one pass from left to right, without recursion, that never fails and never looks back.

The common member of a config (a key in double quotes, a plain scalar or an opening bracket, a comma or a closing brace)
is one match of one regular expression. Whatever that does not match is read step by step, as hjson 3.1.0 would, and
where hjson would raise, a problem is noted and reading goes on at the next place that makes sense.
"""

from __future__ import annotations

import re

from dsmigrate.document import strings, words
from dsmigrate.document.frames import Frames
from dsmigrate.document.problems import Code
from dsmigrate.document.shapes import (
    ABSENT,
    MemberShape,
    Note,
    ScalarShape,
    Style,
)
from dsmigrate.patience import pause

_SCALAR = r'("[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)'
_BLANKS = re.compile(r"[ \t\n\r]*")
_MEMBER = re.compile(r'[ \t\n\r]*("[^"\\\x00-\x1f]*")[ \t\n\r]*:[ \t\n\r]*(?:' + _SCALAR + r"[ \t\n\r]*([,}])|([{\[]))")
_ITEM = re.compile(r"[ \t\n\r]*" + _SCALAR + r"[ \t\n\r]*([,\]])")
_NUMBER = re.compile(r"(-?[0-9]+)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class Reader(Frames):
    """Reads one text; see ``Frames`` for what it takes and what it tells afterwards."""

    __slots__ = ()

    # The text as a whole, and parts of it

    def container(self, pos: int) -> None:
        """Read the container whose bracket stands at ``pos``, a child of ``top``, to its end or that of the text."""
        self.begin(pos, braces=True)
        self._run()

    def members(self, pos: int) -> None:
        """Read a root object without braces from ``pos`` to the end of the text."""
        self.begin(pos, braces=False)
        self._run()

    def scalar(self, pos: int) -> None:
        """Read the scalar at ``pos``, a child of ``top``."""
        self._item(pos)

    # Containers

    def _run(self) -> None:
        top = self.top
        while self.node is not top:
            pause()
            if self.node.is_object:
                self._members()
            else:
                self._items()

    def _members(self) -> None:
        """Read members until another container is in hand."""
        node, base, text, match = self.node, self.base, self.text, _MEMBER.match
        starts, children, commas, scalars = node.starts, node.children, node.commas, self.scalars
        while self.node is node:
            found = None if self.pending else match(text, self.pos)
            if found is None:
                self._step()
                continue
            name, raw, mark, _ = found.groups()
            spans = found.regs
            start, colon = spans[1]
            key = scalars.get(name)
            if key is None:
                key = scalars[name] = ScalarShape(name[1:-1], colon - start, Style.DOUBLE)
            if text[colon] != ":":
                colon = text.index(":", colon)
            if raw is None:
                self.key, self.member_at, self.colon = key, start, colon
                self.begin(found.end() - 1, braces=True)
                return
            value_at = spans[2][0]
            value = scalars.get(raw)
            if value is None:
                value = self._plain(raw, value_at)
            starts.append(start - base)
            children.append(MemberShape(key, colon - start, value_at - start, value))
            self.pos = end = found.end()
            if mark == ",":
                commas.append(end - 1 - base)
                continue
            commas.append(ABSENT)
            if node.braces:
                self.end(end, closed=True)
            else:  # nothing here for the brace to close
                self.pos = end - 1
                self.pending = True

    def _items(self) -> None:
        """Read items until another container is in hand."""
        node, base, text, match = self.node, self.base, self.text, _ITEM.match
        while self.node is node:
            found = None if self.pending else match(text, self.pos)
            if found is None:
                self._step()
                continue
            raw, mark = found.groups()
            start = found.start(1)
            value = self.scalars.get(raw)
            if value is None:
                value = self._plain(raw, start)
            node.starts.append(start - base)
            node.children.append(value)
            self.pos = end = found.end()
            if mark == ",":
                node.commas.append(end - 1 - base)
            else:
                node.commas.append(ABSENT)
                self.end(end, closed=True)

    def _plain(self, raw: str, start: int) -> ScalarShape:
        """Make the shape of a scalar that is strict JSON, to be used for every other one spelled like it."""
        if raw[0] == '"':
            shape = ScalarShape(raw[1:-1], len(raw), Style.DOUBLE)
        elif raw in _LITERALS:
            shape = ScalarShape(_LITERALS[raw], len(raw), Style.LITERAL)
        else:
            found = _NUMBER.match(raw)
            value, wrong = words.number(found[1], found[2] or "", found[3] or "") if found else (raw, None)
            shape = ScalarShape(value, len(raw), Style.NUMBER)
            if wrong is not None:
                self.note(wrong, start, start + len(raw))
                return shape
        self.scalars[raw] = shape
        return shape

    # One step at a time

    def _step(self) -> None:
        """Read one thing of the container in hand: a comma, a bracket, a member or an item."""
        pause()
        pos = self.skip(self.pos)
        char = self.text[pos : pos + 1]
        if char == ",":
            if self.pending:
                self.node.commas[-1] = pos - self.base
                self.pending = False
            else:
                self.note(Code.UNEXPECTED_COMMA, pos, pos + 1)
            self.pos = pos + 1
        elif char in "}]":  # the end of the text, an empty string, is in there too
            self._close(char, pos)
        else:
            if self.pending:
                end = self.last_end()
                self.note(Code.MISSING_COMMA, end, end)
                self.pending = False
            if self.node.is_object:
                self._member(char, pos)
            else:
                self._item(pos)

    def _close(self, char: str, pos: int) -> None:
        node = self.node
        if not self.pending and node.children and node.commas[-1] != ABSENT:
            comma = self.base + node.commas[-1]
            self.note(Code.TRAILING_COMMA, comma, comma + 1)
        if char == "":
            self._end_all(pos)
            return
        is_object = char == "}"
        if not self.open[is_object]:
            self.escaped = True
            self.note(Code.UNEXPECTED_CLOSING, pos, pos + 1)
            self.pos = pos + 1
            return
        while self.node.is_object != is_object:
            self.unclosed()
            self.end(pos, closed=False)
        self.end(pos + 1, closed=True)

    def _end_all(self, pos: int) -> None:
        while self.node is not self.top:
            if self.node.braces:
                self.unclosed()
            self.end(pos, closed=not self.node.braces)

    # Members and values

    def _member(self, char: str, pos: int) -> None:
        self.key, self.member_at, self.colon = None, pos, ABSENT
        if char in "{[":
            self.note(Code.MISSING_KEY, pos, pos + 1)
            self.begin(pos, braces=True)
            return
        if char == ":":
            self.note(Code.MISSING_KEY, pos, pos + 1)
            self.colon = pos
        elif char in "\"'":
            self.key, end, notes = strings.quoted(self.text, pos)
            self.note_all(notes)
            self._find_colon(end)
            if self.colon == ABSENT:
                self.note(Code.MISSING_COLON, pos, end)
        else:
            self._bare_key(pos)
        if self.colon == ABSENT:
            self._without_colon(pos + (self.key.width if self.key else 0))
        else:
            self._value(self.skip(self.colon + 1))

    def _bare_key(self, pos: int) -> None:
        self.key, end, colon = words.bare_key(self.text, pos)
        if colon is not None:
            self.note(Code.UNQUOTED_KEY, pos, end)
            self.colon = colon
            return
        self.note(Code.MISSING_COLON, pos, end)  # even before a comment and a colon
        self._find_colon(end)

    def _find_colon(self, pos: int) -> None:
        pos = self.skip(pos)
        if self.text[pos : pos + 1] == ":":
            self.colon = pos
        self.pos = pos

    def _without_colon(self, end: int) -> None:
        """Decide whether what follows a key without a colon is its value; ``pos`` is behind blanks and comments."""
        pos = self.pos
        char = self.text[pos : pos + 1]
        between = self.text[end:pos]
        same_line = "\n" not in between and "\r" not in between
        if char in "{[" and char != "":
            self.begin(pos, braces=True)
        elif char in ",}]" or not same_line or self._key_at(pos):
            self.add(None, pos)
        else:
            self._value(pos)

    def _key_at(self, pos: int) -> bool:
        """Tell whether a key and its colon stand at ``pos``."""
        if self.text[pos] not in "\"'":
            return words.starts_key(self.text, pos)
        _, pos, _ = strings.quoted(self.text, pos)
        while True:
            found = _BLANKS.match(self.text, pos)
            pos = found.end() if found else pos
            end = self.comment_end(pos)
            if end < 0:
                return False
            if end == pos:
                return self.text[pos : pos + 1] == ":"
            pos = end

    def _value(self, pos: int) -> None:
        """Read the value of the member that was begun, at ``pos`` behind blanks and comments."""
        text = self.text
        while text[pos : pos + 1] == ":":
            self.note(Code.UNEXPECTED_COLON, pos, pos + 1)
            pos = self.skip(pos + 1)
        char = text[pos : pos + 1]
        if char in ",}]" or (char in "\"'" and not text.startswith("'''", pos) and self._key_at(pos)):
            self.note(Code.MISSING_VALUE, self.member_at, max(self.colon + 1, self.member_at))
            self.add(None, pos)
            self.pos = pos
        elif char in "{[":
            self.begin(pos, braces=True)
        else:
            self._scalar(char, pos)

    def _item(self, pos: int) -> None:
        char = self.text[pos : pos + 1]
        if char == ":":
            self.note(Code.UNEXPECTED_COLON, pos, pos + 1)
            self.pos = pos + 1
        elif char in "{[":
            self.begin(pos, braces=True)
        else:
            self._scalar(char, pos)

    def _scalar(self, char: str, pos: int) -> None:
        if char == "'" and self.text.startswith("'''", pos):
            self.multiline = True
            shape, end, notes = strings.multiline(self.text, pos, self.column(pos))
        elif char in "\"'":
            shape, end, notes = strings.quoted(self.text, pos)
        else:
            shape, end, notes = words.word(self.text, pos) or self._quoteless(pos)
        self.note_all(notes)
        self.add(shape, pos)
        self.pos = end

    def _quoteless(self, pos: int) -> tuple[ScalarShape, int, list[Note]]:
        in_object = self.node.is_object
        last = self.line_end(pos)
        shape, end, notes, suspicious = words.quoteless(self.text, pos, last, in_object=in_object, cut=self.cut)
        self.suspicious = self.suspicious or suspicious
        return shape, end, notes
