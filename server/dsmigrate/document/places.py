"""What lies at an offset: the question that completion and hover ask."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum

from dsmigrate.document import strings
from dsmigrate.document.nodes import Array, Key, Member, Node, Object, Scalar, node
from dsmigrate.document.paths import Path
from dsmigrate.document.problems import Code
from dsmigrate.document.shapes import ABSENT, ContainerShape, MemberShape, Style, value_of


class Where(Enum):
    """The kinds of places.

    KEY and VALUE are in, or at the edge of, a key or a value. A key could be written at a KEY_GAP, a value (of a member
    or an item) at a VALUE_GAP, and a colon at a COLON_GAP. AFTER_VALUE is behind a value on its line, where a comma
    could come. OUTSIDE is before or behind the root.
    """

    KEY = "key"
    VALUE = "value"
    KEY_GAP = "key-gap"
    COLON_GAP = "colon-gap"
    VALUE_GAP = "value-gap"
    AFTER_VALUE = "after-value"
    COMMENT = "comment"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Place:
    """What lies at an offset.

    Attributes:
        where: the kind of place.
        path: of the key or value, or at a VALUE_GAP of the value that belongs there; otherwise of the container.
        container: the object or array around it, None outside of the root.
        member: the member, for places in one.
        node: the key or value, for KEY and VALUE.
        start: where the key, value or comment starts, which completion would replace; else the offset itself.
        end: where it ends; else the offset itself.
        index: how many children of the container start before the offset.
        needs_comma: for gaps, whether a child stands before and no comma behind it.
        unfinished: whether it is a string without a closing quote.
    """

    where: Where
    path: Path
    container: Object | Array | None
    member: Member | None
    node: Key | Node | None
    start: int
    end: int
    index: int = 0
    needs_comma: bool = False
    unfinished: bool = False


def place_at(top: ContainerShape, text: str, offset: int) -> Place:
    """Return what lies at ``offset`` of ``text``, whose tree is ``top``; an offset outside is moved to the next end."""
    offset = min(max(offset, 0), len(text))
    shape, base = top, 0
    path: list[str | int] = []
    while True:
        index = bisect_right(shape.starts, offset - base) - 1
        at, value = value_of(shape.children[index]) if index >= 0 else (0, None)
        inner = base + shape.starts[index] + at if index >= 0 else 0
        if not isinstance(value, ContainerShape) or not _is_inside(value, inner, offset):
            break
        if shape is not top:
            path.append(_part(shape, index))
        shape, base = value, inner
    return _Finder(text, offset, shape, base, None if shape is top else tuple(path)).find(index)


def _is_inside(shape: ContainerShape, start: int, offset: int) -> bool:
    end = start + shape.width
    if not shape.braces:
        return True
    return start < offset < end or (offset == end and not shape.closed)


def _part(shape: ContainerShape, index: int) -> str | int:
    child = shape.children[index]
    if isinstance(child, MemberShape):
        return "" if child.key is None else str(child.key.value)
    return index


class _Finder:
    """One offset, and the smallest container it lies in; ``path`` is None for the text itself."""

    __slots__ = ("base", "container", "in_top", "offset", "path", "shape", "text")

    def __init__(self, text: str, offset: int, shape: ContainerShape, base: int, path: Path | None) -> None:
        self.text, self.offset, self.shape, self.base = text, offset, shape, base
        self.path: Path = path or ()
        self.in_top = path is None
        found = None if path is None else node(shape, base, text)
        self.container = found if isinstance(found, Object | Array) else None

    def find(self, index: int) -> Place:
        comment = self._comment()
        if comment is not None:
            return self._place(Where.COMMENT, index, start=comment[0], end=comment[1])
        if index < 0:
            return self._gap(index)
        if isinstance(self.container, Object):
            return self._in_member(self.container.member(index))
        start = self.base + self.shape.starts[index]
        _, value = value_of(self.shape.children[index])
        if value is None:
            return self._gap(index)
        item = node(value, start, self.text)
        return self._in_value(item, None, index) or self._gap(index)

    def _comment(self) -> tuple[int, int] | None:
        rel = self.offset - self.base
        comments = self.shape.comments
        index = bisect_right(comments, (rel, -1)) - 1
        if index < 0:
            return None
        start, end = comments[index]
        open_ended = self.text[self.base + start : self.base + start + 2] != "/*"
        if start < rel < end or (rel == end and start < end and (open_ended or end - start < 4)):
            return self.base + start, self.base + end
        return None

    def _in_member(self, member: Member) -> Place:
        key, colon = member.key, member.colon
        if key is not None and self.offset <= key.end:
            unfinished = _is_unfinished(key)
            path = (*self.path, key.name)
            return self._place(
                Where.KEY, member.index, path, member, key, start=key.start, end=key.end, unfinished=unfinished
            )
        if key is not None and (colon is None or self.offset <= colon):
            if colon is None and (member.node is not None or self._line_break(key.end)):
                return self._behind(member)
            return self._place(Where.COLON_GAP, member.index, self.path, member)
        return self._behind(member)

    def _behind(self, member: Member) -> Place:
        """Return the place behind the key, and the colon if there is one."""
        value = member.node
        path = (*self.path, member.name or "")
        comma = member.comma
        if value is None:
            if member.colon is None or (comma is not None and self.offset > comma):
                return self._gap(member.index)
            return self._place(Where.VALUE_GAP, member.index, path, member)
        if self.offset < value.start:
            return self._place(Where.VALUE_GAP, member.index, path, member)
        return self._in_value(value, member, member.index) or self._gap(member.index)

    def _in_value(self, value: Node, member: Member | None, index: int) -> Place | None:
        scalar = isinstance(value, Scalar)
        if not (self.offset <= value.end if scalar else self.offset == value.start):
            return None
        path = self.path if self.in_top else (*self.path, _part(self.shape, index))
        unfinished = isinstance(value, Scalar) and _is_unfinished(value)
        return self._place(
            Where.VALUE, index, path, member, value, start=value.start, end=value.end, unfinished=unfinished
        )

    def _gap(self, index: int) -> Place:
        """Return the place between child ``index`` and the next."""
        if self.container is None:
            return self._place(Where.OUTSIDE, index)
        gap = Where.KEY_GAP if isinstance(self.container, Object) else Where.VALUE_GAP
        path = self.path if gap is Where.KEY_GAP else (*self.path, index + 1)
        if index < 0:
            return self._place(gap, index, path)
        comma = self.shape.commas[index]
        if comma != ABSENT and self.offset > self.base + comma:
            return self._place(gap, index, path)
        end = self.base + self.shape.starts[index] + self.shape.children[index].width
        if comma == ABSENT and self._line_break(end):
            return self._place(gap, index, path, needs_comma=True)
        return self._place(Where.AFTER_VALUE, index, needs_comma=comma == ABSENT)

    def _line_break(self, start: int) -> bool:
        between = self.text[start : self.offset]
        return "\n" in between or "\r" in between

    def _place(
        self,
        where: Where,
        index: int,
        path: Path | None = None,
        member: Member | None = None,
        found: Key | Node | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        needs_comma: bool = False,
        unfinished: bool = False,
    ) -> Place:
        return Place(
            where,
            self.path if path is None else path,
            self.container,
            member,
            found,
            self.offset if start is None else start,
            self.offset if end is None else end,
            index + 1,
            needs_comma,
            unfinished,
        )


def _is_unfinished(found: Key | Scalar) -> bool:
    if found.style in {Style.DOUBLE, Style.SINGLE}:
        raw = found.raw
        return any(code is Code.UNTERMINATED_STRING for code, _, _ in strings.quoted(raw, 0)[2])
    return found.style is Style.MULTILINE and (len(found.raw) < 6 or not found.raw.endswith("'''"))
