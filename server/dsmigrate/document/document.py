"""The text of a config and its tree."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dsmigrate.document import layout, lookup, places, splicing
from dsmigrate.document.errors import DocumentError
from dsmigrate.document.nodes import Key, Member, Node, load, node
from dsmigrate.document.paths import Path
from dsmigrate.document.places import Place
from dsmigrate.document.positions import Encoding, LineIndex, Position
from dsmigrate.document.problems import MAX_DEPTH, Breaks, Code, Problem, problem
from dsmigrate.document.reading import Tree, mark_width, read
from dsmigrate.document.shapes import ContainerShape, MemberShape, ValueShape, value_of
from dsmigrate.languages import say

_LONG = 8
"""Parts from which a path is long."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that occurs again in its object: the ``first`` one and the one ``again``."""

    first: Key
    again: Key


class Document:
    """The text of a config, its tree, and what is wrong with it; never changes.

    Offsets are code points of ``text``, which keeps its byte-order mark. Two documents of the same text are equal.
    Made by ``parse`` and ``parse_bytes``.
    """

    __slots__ = ("_content", "_duplicates", "_obstacle", "_problems", "_way", "lines", "text", "tree")

    def __init__(self, text: str, tree: Tree) -> None:
        self.text = text
        self.tree = tree
        self.lines = LineIndex(text)
        self._problems: tuple[Problem, ...] | None = None
        self._content: tuple[object] | None = None
        self._duplicates: tuple[Duplicate, ...] | None = None
        self._obstacle: tuple[Problem | None] | None = None
        self._way: tuple[Path, Node | None] = ((), None)

    # The tree

    @property
    def root(self) -> Node | None:
        """The root; None for a text of nothing but blanks and comments."""
        top = self.tree.top
        if not top.children:
            return None
        shape = _value(top.children[0])
        return node(shape, top.starts[0], self.text)

    def value(self) -> object:
        """Return what DeepSpeed's loader returns, where it returns something.

        An empty text is an empty dictionary. Of equal keys, which DeepSpeed rejects, the last one counts. From text it
        rejects, whatever has a key and a value is returned.
        """
        top = self.tree.top
        return load(_value(top.children[0])) if top.children else {}

    @property
    def content(self) -> object:
        """What ``value`` returns, made once and shared: not to be changed."""
        if self._content is None:
            self._content = (self.value(),)
        return self._content[0]

    def node_at(self, path: Path) -> Node | None:
        """Return the value at ``path``, None where there is none; of equal keys the last one counts.

        Of long paths the way to the last one is kept: who asks for one asks for those beside it and below.
        """
        if len(path) < _LONG:
            return lookup.node_at(self.root, path)
        way, holder = self._way
        if not way or path[: len(way)] != way:
            way, holder = path[:-1], lookup.node_at(self.root, path[:-1])
        elif len(way) < len(path) - 1:
            way, holder = path[:-1], lookup.node_at(holder, path[len(way) : -1])
        self._way = way, holder
        return lookup.node_at(holder, path[len(way) :])

    def member_at(self, path: Path) -> Member | None:
        """Return the member at ``path``, with or without a value; None where there is none."""
        holder = self.node_at(path[:-1]) if path else None
        return lookup.member_at(holder, path[-1:])

    def along(self, path: Path) -> Iterator[tuple[Member | None, Node | None]]:
        """Yield the member, or None for an item, and the value at each part of ``path``, as far as there is a value."""
        return lookup.along(self.root, path)

    def range_of(self, path: Path, part: Literal["key", "value", "member"] = "value") -> tuple[int, int] | None:
        """Return start and end of the key, value or member at ``path``, None where it is missing.

        The item of an array has a value, which is its member too, and no key.
        """
        if len(path) < _LONG:
            return lookup.range_of(self.root, path, part)
        return lookup.range_of(self.node_at(path[:-1]), path[-1:], part)

    def place_at(self, offset: int) -> Place:
        """Return what lies at ``offset``, for whoever completes or explains what is there."""
        return places.place_at(self.tree.top, self.text, offset)

    def walk(self) -> Iterator[tuple[Path, Member | None, Node | None]]:
        """Yield the path, the member (None for items and the root) and the value of everything, in order."""
        return lookup.walk(self.root)

    # What is wrong, and what else there is

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the text for DeepSpeed, and for readers of strict JSON, in order."""
        if self._problems is None:
            self._problems = tuple(
                sorted(self._find_problems(), key=lambda item: (item.start, item.end, item.code.value))
            )
        return self._problems

    @property
    def obstacle(self) -> Problem | None:
        """The first problem that leaves open what the text means, so that nothing edits it: fatal and no equal key."""
        if self._obstacle is None:
            fatal = (item for item in self.problems if item.is_fatal and item.code is not Code.DUPLICATE_KEY)
            self._obstacle = (next(fatal, None),)
        return self._obstacle[0]

    @property
    def is_readable(self) -> bool:
        """Whether DeepSpeed's loader accepts the text."""
        return not any(item.is_fatal for item in self.problems)

    @property
    def is_strict_json(self) -> bool:
        """Whether the text is JSON as RFC 8259 has it, which also excludes NaN."""
        return not any(Breaks.JSON in item.breaks for item in self.problems)

    @property
    def comments(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each comment, in order."""
        return tuple(sorted((base + a, base + b) for shape, base in self._noted() for a, b in shape.comments))

    @property
    def duplicates(self) -> tuple[Duplicate, ...]:
        """The keys that occur again, in order."""
        if self._duplicates is None:
            found: list[Duplicate] = []
            for shape, base in self._noted():
                if any(code is Code.DUPLICATE_KEY for code, _, _ in shape.notes):
                    found.extend(_duplicates(shape, base, self.text))
            self._duplicates = tuple(sorted(found, key=lambda item: item.again.start))
        return self._duplicates

    @property
    def has_bom(self) -> bool:
        """Whether the text starts with a byte-order mark."""
        return mark_width(self.text) > 0

    @property
    def newline(self) -> str:
        """The line end that most lines use; a line feed when there is none."""
        return layout.newline_of(self.text)

    @property
    def indent(self) -> str:
        """What a level of nesting is indented by; four blanks where the text does not show it."""
        return layout.indent_of(self.root, self.text)

    # Positions

    def position(self, offset: int, encoding: Encoding = Encoding.UTF16) -> Position:
        """Return line and character of ``offset``; see ``LineIndex``."""
        return self.lines.position(offset, encoding)

    def offset(self, position: Position, encoding: Encoding = Encoding.UTF16) -> int:
        """Return the offset of a line and character; see ``LineIndex``."""
        return self.lines.offset(position, encoding)

    # Changes

    def edit(self, start: int, end: int, replacement: str) -> Document:
        """Return the document with ``text[start:end]`` replaced; what is not touched is shared.

        Raises ValueError for a range that is not one of the text.
        """
        if not 0 <= start <= end <= len(self.text):
            raise ValueError(f"{start} to {end} is no range of a text of {len(self.text)} code points")
        text = f"{self.text[:start]}{replacement}{self.text[end:]}"
        return Document(text, splicing.edited(self.tree, text, start, end, len(replacement) - (end - start)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<Document of {len(self.text)} code points>"

    def _noted(self) -> Iterator[tuple[ContainerShape, int]]:
        """Yield the containers with notes or comments of their own or inside, and their offsets."""
        waiting = [(self.tree.top, 0)]
        while waiting:
            shape, base = waiting.pop()
            yield shape, base
            for start, child in zip(shape.starts, shape.children, strict=True):
                at, value = value_of(child)
                if isinstance(value, ContainerShape) and value.noted:
                    waiting.append((value, base + start + at))

    def _find_problems(self) -> Iterator[Problem]:
        for shape, base in self._noted():
            for code, start, end in shape.notes:
                yield problem(code, self.text, base + start, base + end)
            for start, end in shape.comments:
                yield problem(Code.COMMENT, self.text, base + start, base + end)
        too_deep = _at_depth(self.tree.top, MAX_DEPTH + 1)
        if too_deep is not None:
            yield problem(Code.TOO_DEEP, self.text, too_deep, too_deep + 1)


def parse(text: str) -> Document:
    """Return the document of ``text``, which may be anything."""
    return Document(text, read(text))


def parse_bytes(data: bytes) -> Document:
    """Return the document of a file; a byte-order mark stays in its text.

    Raises DocumentError, with the offset of the byte, for bytes that are not UTF-8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DocumentError("the file is UTF-16, which DeepSpeed does not read; save it as UTF-8", 0)
    try:
        return parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = say(
            "byte 0x{data} at offset {start} is not valid UTF-8; save the file as UTF-8",
            data=f"{data[error.start]:02x}",
            start=error.start,
        )
        raise DocumentError(message, error.start) from None


def _value(child: MemberShape | ValueShape) -> ValueShape:
    assert not isinstance(child, MemberShape)  # noqa: S101 - the root is a value
    return child


def _duplicates(shape: ContainerShape, base: int, text: str) -> Iterator[Duplicate]:
    first: dict[str, Key] = {}
    for start, child in zip(shape.starts, shape.children, strict=True):
        if isinstance(child, MemberShape) and child.key is not None:
            key = Key(child.key, base + start, text)
            if key.name in first:
                yield Duplicate(first[key.name], key)
            else:
                first[key.name] = key


def _at_depth(top: ContainerShape, depth: int) -> int | None:
    """Return the offset of the first container ``depth`` levels below ``top``, None where nothing is that deep."""
    node, base = top, 0
    for level in range(depth, 0, -1):
        for start, child in zip(node.starts, node.children, strict=True):
            at, value = value_of(child)
            if isinstance(value, ContainerShape) and value.height >= level:
                node, base = value, base + start + at
                break
        else:
            return None
    return base
