"""Reading again only what an edit can have changed.

Reading a container depends on nothing but its text, as long as it ends with a bracket of its own and holds none of the
few things that look further (``Reader.suspicious``, ``multiline``, ``escaped``). So the smallest container around an
edit is read from its new text; if it ends exactly where that text does, it takes the place of the old one, and the
containers around it are copied with later offsets moved. Otherwise the next larger container is tried. Containers
beside the edit with neither problems nor comments in them read the same wherever they stand, and are not read again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from dsmigrate.document.reading import Tree, read, read_part
from dsmigrate.document.shapes import ABSENT, ContainerShape, MemberShape, value_of

_Step = tuple[ContainerShape, int, int]
"""A container, its offset in the text, and the number of the child in which the edit lies."""
_Edit = tuple[int, int, int]
"""Start and end of what is replaced, and by how much the text grows."""


def edited(tree: Tree, text: str, start: int, end: int, growth: int) -> Tree:
    """Return the tree of ``text``, which came from the text of ``tree`` by an edit of ``start`` to ``end``.

    ``growth`` is the number of code points by which the text has become longer. ``tree`` stays as it is, and shares
    what the edit has not touched.
    """
    if not tree.divisible:
        return read(text)
    steps, node, base = _around(tree.top, start, end)
    edit = start, end, growth
    kept = dict(_untouched(node, base, edit))
    tried = 0
    while steps:
        width = node.width + growth
        if width >= 2 * tried:  # so that all tries together cost no more than twice the last one
            part = read_part(text[base : base + width], {at - base: shape for at, shape in kept.items()})
            if part is not None:
                return Tree(_spliced(steps, part, growth), divisible=True)
            tried = width
        inner = node
        node, base, _ = steps.pop()
        kept.update(_untouched(node, base, edit, done=inner))
    return read(text, kept)


def _untouched(
    node: ContainerShape, base: int, edit: _Edit, done: ContainerShape | None = None
) -> Iterator[tuple[int, ContainerShape]]:
    """Yield the containers in ``node`` that lie beside the edit and can be kept, with their offsets in the new text.

    ``done`` is passed over; of those that cannot be kept, what lies in them is looked at.
    """
    start, end, growth = edit
    waiting = [(node, base)]
    while waiting:
        node, base = waiting.pop()
        for offset, child in zip(node.starts, node.children, strict=True):
            at, shape = value_of(child)
            if not isinstance(shape, ContainerShape) or shape is done:
                continue
            first = base + offset + at
            last = first + shape.width
            if not shape.closed or shape.noted or (start < last and first < end):
                waiting.append((shape, first))
            elif last <= start:
                yield first, shape
            else:
                yield first + growth, shape


def _around(top: ContainerShape, start: int, end: int) -> tuple[list[_Step], ContainerShape, int]:
    """Return the way to the smallest closed container that has the edit strictly inside, and that with its offset."""
    steps: list[_Step] = []
    node, base = top, 0
    while True:
        index = bisect_right(node.starts, start - base) - 1
        if index < 0:
            return steps, node, base
        at, value = value_of(node.children[index])
        inner = base + node.starts[index] + at
        if not isinstance(value, ContainerShape) or not value.closed:
            return steps, node, base
        if not inner < start <= end < inner + value.width:
            return steps, node, base
        steps.append((node, base, index))
        node, base = value, inner


def _spliced(steps: list[_Step], part: ContainerShape, growth: int) -> ContainerShape:
    for node, _, index in reversed(steps):
        part = _with_child(node, index, part, growth)
    return part


def _with_child(node: ContainerShape, index: int, new: ContainerShape, growth: int) -> ContainerShape:
    child = node.children[index]
    at, old = value_of(child)
    copy = ContainerShape(is_object=node.is_object, braces=node.braces)
    copy.children = node.children.copy()
    copy.children[index] = MemberShape(child.key, child.colon, at, new) if isinstance(child, MemberShape) else new
    copy.closed = node.closed
    copy.width = node.width + growth
    copy.noted = node.noted or new.noted
    copy.height = _height(node, old, new, copy)
    if growth == 0:
        copy.starts, copy.commas, copy.notes, copy.comments = node.starts, node.commas, node.notes, node.comments
        return copy
    later = index + 1
    copy.starts = node.starts[:later] + [start + growth for start in node.starts[later:]]
    moved = [comma if comma == ABSENT else comma + growth for comma in node.commas[index:]]
    copy.commas = node.commas[:index] + moved
    behind = node.starts[index] + at + (old.width if old else 0)
    copy.notes = [
        (code, start + growth, end + growth) if start >= behind else (code, start, end)
        for code, start, end in node.notes
    ]
    copy.comments = [
        (start + growth, end + growth) if start >= behind else (start, end) for start, end in node.comments
    ]
    return copy


def _height(node: ContainerShape, old: object, new: ContainerShape, copy: ContainerShape) -> int:
    """Return the height of ``copy``, without a look at the other children where they cannot matter."""
    was = old.height if isinstance(old, ContainerShape) else 0
    if new.height >= was:
        return max(node.height, new.height + 1)
    if was + 1 < node.height:
        return node.height
    values = (value_of(child)[1] for child in copy.children)
    return 1 + max((value.height for value in values if isinstance(value, ContainerShape)), default=0)
