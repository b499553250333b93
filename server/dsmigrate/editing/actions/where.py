"""What a range of the text lies in."""

from __future__ import annotations

from bisect import bisect_right

from dsmigrate.document import Array, Document, Object
from dsmigrate.editing.actions.model import Here


def here(document: Document, start: int, end: int) -> Here:
    """Return what lies around a range; offsets beyond the text, or in the wrong order, are moved to where they fit."""
    length = len(document.text)
    start = min(max(start, 0), length)
    end = min(max(end, start), length)
    path: list[str | int] = []
    section = 0
    node = document.root
    while isinstance(node, Object | Array) and node.start <= start and end <= node.end:
        if isinstance(node, Object):
            section = len(path)
        index = bisect_right(node.shape.starts, start - node.start) - 1
        if index < 0:
            break
        if isinstance(node, Object):
            member = node.member(index)
            if member.name is None or end > member.end:
                break
            path.append(member.name)
            node = member.node
        else:
            item = node.item(index)
            if end > item.end:
                break
            path.append(index)
            node = item
    return Here(start, end, tuple(path), tuple(path[:section]))
