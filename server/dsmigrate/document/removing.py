"""Taking out a member or an item, with its comma and its line, and nothing of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from dsmigrate.document import layout
from dsmigrate.document.audit import check_editable, checked, value_at, with_value
from dsmigrate.document.document import Document
from dsmigrate.document.errors import EditError
from dsmigrate.document.inserting import line_tail, value_tail
from dsmigrate.document.nodes import Array, Member, Node, Object
from dsmigrate.document.paths import Path, render_path
from dsmigrate.document.textedits import TextEdit


def remove(document: Document, path: Path, *, members: Sequence[Member] = ()) -> tuple[TextEdit, ...]:
    """Return the edits that remove the member or item at ``path``.

    Its comma, its line if it has it for itself, and the comment behind it on that line go with it. Of equal keys the
    one that counts is removed, or else ``members``, which lie in one object. Raises EditError when there is nothing at
    ``path``, and when the text is not one that DeepSpeed reads (duplicate keys aside).
    """
    check_editable(document)
    if not path:
        raise EditError("the root cannot be removed")
    container = _holder(document, members[0]) if members else document.node_at(path[:-1])
    index = _index(container, path[-1])
    if not isinstance(container, Object | Array) or index is None:
        raise EditError(f"there is no {render_path(path)} to remove")
    gone = {member.index for member in members} or {index}
    left: object
    around = value_at(document.content, path[:-1])
    if isinstance(around, dict) and not document.duplicates:
        left = {name: value for name, value in around.items() if name != path[-1]}
    elif isinstance(container, Object):
        left = {
            str(child.name): child.node.value()
            for child in container
            if child.index not in gone and child.node is not None
        }
    else:
        left = [child.value() for number, child in enumerate(container) if number not in gone]
    edits = [edit for number in sorted(gone) for edit in remove_child(document.text, container, number)]
    return checked(document, edits, with_value(document.content, path[:-1], left))


def _holder(document: Document, member: Member) -> Object | None:
    """Return the object a member lies in, which a path does not tell where keys around it are doubled."""
    for _, _, node in document.walk():
        if isinstance(node, Object) and member.index < len(node) and node.member(member.index).start == member.start:
            return node
    return None


def _index(container: Node | None, part: str | int) -> int | None:
    if isinstance(container, Object) and isinstance(part, str):
        member = container.get(part)
        return None if member is None else member.index
    if isinstance(container, Array) and isinstance(part, int) and 0 <= part < len(container):
        return part
    return None


def remove_child(text: str, container: Object | Array, index: int) -> list[TextEdit]:
    """Return the edits that remove child ``index`` of ``container``, unchecked."""
    child = _child(container, index)
    comma = container.comma(index)
    end = value_tail(text, child)
    behind = end if comma is None else comma + 1
    tail = behind if layout.has_line_end(text, end, behind) else line_tail(text, container, behind)
    ends_line = _ends_line(text, tail)
    if len(container) == 1 and _fills(text, container, child.start, tail if ends_line else behind):
        return [TextEdit(container.inner_start, container.inner_end, "")]
    edits = _comma_before(container, index) if comma is None and index + 1 == len(container) else []
    if layout.starts_line(text, child.start) and ends_line:
        return [*edits, _line(text, child.start, tail)]
    if index + 1 < len(container):
        following = _child(container, index + 1)
        if not layout.has_line_end(text, behind, following.start):
            blank = text[behind : following.start].strip(" \t") == ""
            return [TextEdit(child.start, following.start if blank else behind, "")]
    alone = edits and ends_line and layout.starts_line(text, edits[0].start)
    if alone and text[edits[0].end : child.start].strip(" \t") == "":
        return [_line(text, edits[0].start, tail)]
    start = child.start
    while start > container.inner_start and text[start - 1] in " \t":
        start -= 1
    if edits and edits[0].end == start:
        return [TextEdit(edits[0].start, behind, "")]
    return [*edits, TextEdit(start, behind, "")]


def _child(container: Object | Array, index: int) -> Member | Node:
    return container.member(index) if isinstance(container, Object) else container.item(index)


def _ends_line(text: str, offset: int) -> bool:
    return text[offset : layout.line_end(text, offset)].strip(" \t") == ""


def _fills(text: str, container: Object | Array, start: int, end: int) -> bool:
    """Tell whether a container with brackets holds nothing beside ``start`` to ``end``."""
    has_brackets = not isinstance(container, Object) or container.has_braces
    before, after = text[container.inner_start : start], text[end : container.inner_end]
    return has_brackets and (before + after).strip(" \t\r\n") == ""


def _comma_before(container: Object | Array, index: int) -> list[TextEdit]:
    """Take out the comma that would become a trailing one."""
    comma = container.comma(index - 1) if index else None
    return [] if comma is None else [TextEdit(comma, comma + 1, "")]


def _line(text: str, start: int, tail: int) -> TextEdit:
    first, last = layout.line_start(text, start), layout.line_end(text, tail)
    if text.startswith("\ufeff") and first == 0:
        first = 1
    if last < len(text):
        return TextEdit(first, last + (2 if text.startswith("\r\n", last) else 1), "")
    if first >= 1 and text[first - 1] in "\r\n":  # the last line has no line end; it takes the one before it
        first -= 2 if text[:first].endswith("\r\n") else 1
    return TextEdit(first, last, "")
