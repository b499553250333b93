"""Selections that grow: from the text of a value to the value, the member, the section, the file."""

from __future__ import annotations

from dsmigrate.document import Key, Scalar, Style, Where
from dsmigrate.document.nodes import Member, Node
from dsmigrate.editing.view import View

_MOST = 200
"""Ranges below the whole text: they nest in the answer, which neither side can read a thousand levels deep."""
_QUOTED = frozenset({Style.DOUBLE, Style.SINGLE})


def selections(view: View, offset: int) -> tuple[tuple[int, int], ...]:
    """Return start and end of the ranges around ``offset``, the smallest first, the last one the whole text.

    Of a text that is nested very deeply the ranges between the smallest and the whole are left out.
    """
    document = view.document
    place = document.place_at(offset)
    found: list[tuple[int, int]] = []
    if place.where is Where.COMMENT:
        found.append((place.start, place.end))
    if isinstance(place.node, Key | Scalar):
        found += _quoted(place.node, offset)
    if place.member is not None:
        found.append((place.member.start, place.member.end))
    for member, node in reversed([(None, document.root), *document.along(place.path)]):
        found += _around(node, member, offset)
    whole = (0, len(document.text))
    return _growing([*found[:_MOST], whole], offset)


def _quoted(node: Key | Scalar, offset: int) -> list[tuple[int, int]]:
    inner = (node.start + 1, node.end - 1)
    inside = node.style in _QUOTED and inner[0] <= offset <= inner[1] and inner[0] < inner[1]
    return [*([inner] if inside else []), (node.start, node.end)]


def _around(node: Node | None, member: Member | None, offset: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    if node is not None and not isinstance(node, Scalar):
        found.append((node.inner_start, node.inner_end))
    if node is not None:
        found.append((node.start, node.end))
    if member is not None:
        found.append((member.start, member.end))
    return [span for span in found if span[0] <= offset <= span[1]]


def _growing(found: list[tuple[int, int]], offset: int) -> tuple[tuple[int, int], ...]:
    """Return each range that holds the offset and is larger than the one before."""
    kept: list[tuple[int, int]] = []
    for start, end in found:
        holds = start <= offset <= end
        if holds and (not kept or (start <= kept[-1][0] and end >= kept[-1][1] and (start, end) != kept[-1])):
            kept.append((start, end))
    return tuple(kept) or ((offset, offset),)
