"""From paths to nodes, and over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dsmigrate.document.nodes import Array, Member, Node, Object
from dsmigrate.document.paths import Path
from dsmigrate.document.problems import MAX_DEPTH
from dsmigrate.patience import pause

Found = tuple[Path, Member | None, Node | None]


def node_at(root: Node | None, path: Path) -> Node | None:
    """Return the value at ``path`` below ``root``, None where there is none."""
    node = root
    for part in path:
        node = _below(node, part)[1]
        if node is None:
            return None
    return node


def along(root: Node | None, path: Path) -> Iterator[tuple[Member | None, Node | None]]:
    """Yield the member, or None for an item, and the value at each part of ``path``, as far as there is a value."""
    node = root
    for part in path:
        member, node = _below(node, part)
        yield member, node
        if node is None:
            return


def _below(node: Node | None, part: str | int) -> tuple[Member | None, Node | None]:
    if isinstance(node, Object) and isinstance(part, str):
        member = node.get(part)
        return member, None if member is None else member.node
    if isinstance(node, Array) and isinstance(part, int) and 0 <= part < len(node):
        return None, node.item(part)
    return None, None


def member_at(root: Node | None, path: Path) -> Member | None:
    """Return the member at ``path`` below ``root``, None where there is none."""
    if not path:
        return None
    last = path[-1]
    node = node_at(root, path[:-1])
    return node.get(last) if isinstance(node, Object) and isinstance(last, str) else None


def range_of(root: Node | None, path: Path, part: Literal["key", "value", "member"]) -> tuple[int, int] | None:
    """Return start and end of a part of what lies at ``path`` below ``root``, None where it is missing."""
    member = member_at(root, path)
    found: Node | Member | None
    if part == "key":
        key = None if member is None else member.key
        return None if key is None else (key.start, key.end)
    found = member if part == "member" and member is not None else node_at(root, path)
    return None if found is None else (found.start, found.end)


def walk(root: Node | None) -> Iterator[Found]:
    """Yield everything below and with ``root``, in order: the path, the member it is or None, the value or None.

    What lies deeper than any loader goes is left out: there, paths alone would take time with the square of the depth.
    """
    if root is None:
        return
    yield (), None, root
    waiting = [_children((), root)]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
            pause()
            continue
        yield found
        path, _, node = found
        if isinstance(node, Object | Array) and len(path) <= MAX_DEPTH:
            waiting.append(_children(path, node))


def _children(path: Path, node: Node) -> Iterator[Found]:
    if isinstance(node, Object):
        for member in node:
            yield (*path, member.name or ""), member, member.node
    elif isinstance(node, Array):
        for index, item in enumerate(node):
            yield (*path, index), None, item
