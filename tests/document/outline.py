"""Everything a document says, as flat lists that compare without recursion."""

from __future__ import annotations

from dsmigrate.document import Document
from dsmigrate.document.shapes import MemberShape, ScalarShape, value_of


def outline(document: Document) -> list[object]:
    """Return every range, style and value of the tree, and every note, in an order that depends on nothing else."""
    rows: list[object] = []
    waiting = [(document.tree.top, 0)]
    while waiting:
        shape, base = waiting.pop()
        rows.append((base, shape.width, shape.is_object, shape.closed, shape.braces, shape.height))
        rows.append([base + start for start in shape.starts])
        rows.append([comma if comma < 0 else base + comma for comma in shape.commas])
        rows.append([(code, base + start, base + end) for code, start, end in shape.notes])
        rows.append([(base + start, base + end) for start, end in shape.comments])
        for start, child in zip(shape.starts, shape.children, strict=True):
            if isinstance(child, MemberShape):
                key = child.key
                rows.append((child.colon, child.value_at, key and (key.value, key.width, key.style)))
            at, value = value_of(child)
            if isinstance(value, ScalarShape):
                rows.append((base + start + at, repr(value.value), value.width, value.style))
            elif value is not None:
                waiting.append((value, base + start + at))
    return rows


def assert_same(one: Document, other: Document) -> None:
    """Assert that two documents have the same text, tree, problems, comments and duplicates."""
    assert one.text == other.text
    assert outline(one) == outline(other), one.text
    assert one.problems == other.problems, one.text
    assert one.comments == other.comments
    assert one.duplicates == other.duplicates or [(pair.first.start, pair.again.start) for pair in one.duplicates] == [
        (pair.first.start, pair.again.start) for pair in other.duplicates
    ]
