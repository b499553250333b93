"""Nodes: shapes with a place in the text. Cheap to make, made when asked for, equal when shape and place are.

All offsets are code points from the start of the text; ``start`` is the first one of a node, ``end`` the one behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

from dsmigrate.document.shapes import (
    ABSENT,
    ContainerShape,
    MemberShape,
    ScalarShape,
    ScalarValue,
    Style,
    ValueShape,
)

_Shape = TypeVar("_Shape", bound=ScalarShape | MemberShape | ContainerShape)
_EXCERPT = 40


class _Placed(Generic[_Shape]):
    """A shape at ``start`` of ``text``."""

    __slots__ = ("shape", "start", "text")

    def __init__(self, shape: _Shape, start: int, text: str) -> None:
        self.shape = shape
        self.start = start
        self.text = text

    @property
    def end(self) -> int:
        """The offset behind the node."""
        return self.start + self.shape.width

    @property
    def raw(self) -> str:
        """The node's text."""
        return self.text[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.shape is other.shape and self.start == other.start

    def __hash__(self) -> int:
        return hash((id(self.shape), self.start))

    def __repr__(self) -> str:
        shown = self.text[self.start : min(self.end, self.start + _EXCERPT)]
        return f"<{type(self).__name__} {self.start}:{self.end} {shown!r}>"


class Key(_Placed[ScalarShape]):
    """The key of a member."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The key as the loader reads it, without quotes and escapes."""
        return str(self.shape.value)

    @property
    def style(self) -> Style:
        """DOUBLE, SINGLE or BARE."""
        return self.shape.style


class Scalar(_Placed[ScalarShape]):
    """A string, number, boolean or null."""

    __slots__ = ()

    @property
    def style(self) -> Style:
        """How it is spelled; ``raw`` keeps the spelling itself."""
        return self.shape.style

    def value(self) -> ScalarValue:
        """Return what the loader reads it as."""
        return self.shape.value


class _Container(_Placed[ContainerShape]):
    __slots__ = ()

    @property
    def is_closed(self) -> bool:
        """Whether the closing bracket is there (True without braces)."""
        return self.shape.closed

    @property
    def inner_start(self) -> int:
        """The offset behind the opening bracket."""
        return self.start + self.shape.braces

    @property
    def inner_end(self) -> int:
        """The offset of the closing bracket, or the end of the container where there is none."""
        return self.end - (self.shape.closed and self.shape.braces)

    @property
    def comments(self) -> list[tuple[int, int]]:
        """Start and end of each comment that lies in this container and in none of its children."""
        return [(self.start + start, self.start + end) for start, end in self.shape.comments]

    def comma(self, index: int) -> int | None:
        """Return the offset of the comma after child ``index``, None where there is none."""
        comma = self.shape.commas[index]
        return None if comma == ABSENT else self.start + comma

    def __len__(self) -> int:
        return len(self.shape.children)

    def __bool__(self) -> bool:
        return True


class Object(_Container):
    """An object; a root object may have no braces."""

    __slots__ = ()

    @property
    def has_braces(self) -> bool:
        """Whether the opening brace is there."""
        return self.shape.braces

    @property
    def members(self) -> list[Member]:
        """The members, in order, made anew at each call."""
        return list(self)

    def __iter__(self) -> Iterator[Member]:
        for index in range(len(self.shape.children)):
            yield self.member(index)

    def member(self, index: int) -> Member:
        """Return member ``index``; raises IndexError beyond the last."""
        shape = self.shape.children[index]
        assert isinstance(shape, MemberShape)  # noqa: S101 - the children of an object
        return Member(shape, self.start + self.shape.starts[index], self.text, self.comma(index), index)

    def get(self, name: str) -> Member | None:
        """Return the member that the loader would take for ``name``: the last of that name that has a value."""
        number = self.shape.number_of(name)
        return None if number is None else self.member(number)

    def value(self) -> dict[str, object]:
        """Return what the loader reads; members without a key or a value are left out."""
        loaded = load(self.shape)
        return loaded if isinstance(loaded, dict) else {}


class Array(_Container):
    """An array."""

    __slots__ = ()

    @property
    def items(self) -> list[Node]:
        """The values, in order, made anew at each call."""
        return list(self)

    def __iter__(self) -> Iterator[Node]:
        for index in range(len(self.shape.children)):
            yield self.item(index)

    def item(self, index: int) -> Node:
        """Return value ``index``; raises IndexError beyond the last."""
        shape = self.shape.children[index]
        assert not isinstance(shape, MemberShape)  # noqa: S101 - the children of an array
        return node(shape, self.start + self.shape.starts[index], self.text)

    def value(self) -> list[object]:
        """Return what the loader reads."""
        loaded = load(self.shape)
        return loaded if isinstance(loaded, list) else []


Node: TypeAlias = Object | Array | Scalar


class Member(_Placed[MemberShape]):
    """A key, its colon and its value.

    While it is being typed any of the three can be missing. ``comma`` is the offset of the comma behind it or None, and
    no part of its range; ``index`` its number in the object.
    """

    __slots__ = ("comma", "index")

    def __init__(self, shape: MemberShape, start: int, text: str, comma: int | None, index: int) -> None:
        super().__init__(shape, start, text)
        self.comma = comma
        self.index = index

    @property
    def key(self) -> Key | None:
        """The key."""
        return None if self.shape.key is None else Key(self.shape.key, self.start, self.text)

    @property
    def name(self) -> str | None:
        """The key as the loader reads it."""
        return None if self.shape.key is None else str(self.shape.key.value)

    @property
    def colon(self) -> int | None:
        """The offset of the colon."""
        return None if self.shape.colon == ABSENT else self.start + self.shape.colon

    @property
    def node(self) -> Node | None:
        """The value."""
        shape = self.shape.value
        return None if shape is None else node(shape, self.start + self.shape.value_at, self.text)


def node(shape: ValueShape, start: int, text: str) -> Node:
    """Return the node of ``shape`` at ``start`` of ``text``."""
    if isinstance(shape, ScalarShape):
        return Scalar(shape, start, text)
    return Object(shape, start, text) if shape.is_object else Array(shape, start, text)


def load(shape: ValueShape) -> object:
    """Return what the loader makes of ``shape``: dictionaries, lists and scalars; of equal keys the last one counts."""
    if isinstance(shape, ScalarShape):
        return shape.value
    result: dict[str, object] | list[object] = {} if shape.is_object else []
    waiting = [(shape, result)]
    while waiting:
        container, into = waiting.pop()
        for child in container.children:
            key: ScalarShape | None = None
            value: ValueShape | None
            if isinstance(child, MemberShape):
                key, value = child.key, child.value
                if key is None or value is None:
                    continue
            else:
                value = child
            if isinstance(value, ScalarShape):
                made: object = value.value
            else:
                inner: dict[str, object] | list[object] = {} if value.is_object else []
                waiting.append((value, inner))
                made = inner
            if key is None:
                into.append(made)  # type: ignore[union-attr]
            else:
                into[str(key.value)] = made  # type: ignore[call-overload]
    return result
