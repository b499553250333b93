"""Commas and blanks around something new in an object or a list."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Array, Document, Key, Member, Node, Object, Scalar, Style, TextEdit, layout

Container = Object | Array


@dataclass(frozen=True, slots=True)
class Around:
    """What to write before and behind, and the comma that a neighbour lacks."""

    lead: str
    tail: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """The place of a new child, which replaces ``start`` to ``end``, between the children of two numbers.

    ``comma`` is the offset of the comma that stands behind it already, None where there is none.
    """

    before: int
    after: int
    start: int
    end: int
    comma: int | None = None


def around(document: Document, container: Container, gap: Gap) -> Around:
    """Return what a new child needs at ``gap``."""
    before, start = gap.before, gap.start
    edits: tuple[TextEdit, ...] = ()
    previous = container.member(before) if before >= 0 and isinstance(container, Object) else None
    if (
        previous is not None
        and isinstance(container, Object)
        and _wants_comma(document, container, previous, before, start)
    ):
        edits = (TextEdit(previous.end, previous.end, ","),)
    elif before >= 0 and isinstance(container, Array) and container.comma(before) is None:
        item = container.item(before)
        if not _is_quoteless(item):
            edits = (TextEdit(item.end, item.end, ","),)
    return Around(_lead(document, container, gap), tail(document, container, gap.after, gap.end, gap.comma), edits)


def _wants_comma(document: Document, container: Object, previous: Member, index: int, start: int) -> bool:
    if container.comma(index) is not None or previous.node is None or takes_the_line(previous):
        return False
    return not breaks(document.text, previous.end, start) or _uses_commas(document, container)


def tail(document: Document, container: Container, after: int, end: int, comma: int | None) -> str:
    """Return the comma that has to stand before the child ``after``, "" for none."""
    if comma is not None or not 0 <= after < len(container):
        return ""
    following = container.member(after) if isinstance(container, Object) else container.item(after)
    same_line = not breaks(document.text, end, following.start)
    return "," if same_line or _uses_commas(document, container) else ""


def _lead(document: Document, container: Container, gap: Gap) -> str:
    """Return the blanks that are missing before something new: behind a comma, or at the start of a line."""
    text, start = document.text, gap.start
    if start > 0 and text[start - 1] == ",":
        return " " if start == gap.end and is_airy(container) else ""
    line = layout.line_start(text, start)
    typed = text[line:start]
    if typed.strip(" \t\ufeff"):
        return ""
    for index in (gap.before, gap.after):
        if 0 <= index < len(container):
            child = container.member(index) if isinstance(container, Object) else container.item(index)
            if layout.starts_line(text, child.start) and child.start != start:
                wanted = layout.line_indent(text, child.start)
                return wanted[len(typed) :] if wanted.startswith(typed) else ""
    return ""


def is_airy(container: Container) -> bool:
    """Tell whether a blank stands behind the colons of an object; lists and objects without any are airy."""
    if isinstance(container, Object):
        for member in container:
            node, colon = member.node, member.colon
            if node is not None and colon is not None:
                return node.start > colon + 1
    return True


def _uses_commas(document: Document, container: Container) -> bool:
    """Tell whether children are separated by commas here, or where that does not show, at the top."""
    told = _told(container)
    if told is None:
        root = document.root
        told = _told(root) if isinstance(root, Object) and root != container else None
    if told is not None:
        return told
    return not isinstance(document.root, Object) or document.root.has_braces


def _told(container: Container) -> bool | None:
    """Return whether the children have commas; None where no two whole ones stand side by side."""
    last = len(container) - 1
    whole = False
    for index in range(last + 1):
        if container.comma(index) is not None:
            return True
        before, whole = whole, isinstance(container, Array) or container.member(index).node is not None
        if before and whole:
            return False
    return None


def takes_the_line(member: Member) -> bool:
    """Tell whether the value of a member takes the rest of its line, so that no comma can follow it."""
    return member.node is not None and _is_quoteless(member.node)


def _is_quoteless(node: Node) -> bool:
    return isinstance(node, Scalar) and node.style is Style.BARE


def breaks(text: str, start: int, end: int) -> bool:
    """Tell whether there is a line end between two offsets."""
    return layout.has_line_end(text, start, end)


def has_line_end(text: str, node: Key | Node) -> bool:
    """Tell whether a node goes over a line end."""
    return breaks(text, node.start, node.end)
