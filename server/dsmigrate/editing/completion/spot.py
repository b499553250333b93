"""Where something could be written: what an offset means for completion, in whole and in half-typed text."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, replace

from dsmigrate.document import Array, Document, Key, Member, Node, Object, Path, Place, Scalar, Style, TextEdit, Where
from dsmigrate.editing.completion import gaps

MOST_LEVELS = 12
"""No key of DeepSpeed lies deeper."""
_WORD = re.compile(r"\w*")
_LINE_REST = re.compile(r"[^\r\n]*")


class Wants(enum.Enum):
    """What belongs at a spot."""

    KEY = "key"
    NAME = "name"
    """A key whose value is there already."""
    VALUE = "value"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for a key or a value, and what has to be written around it.

    ``path`` leads to the object for a key, to the value itself for a value. The text from ``start`` to ``end`` is
    replaced, ``lead`` and ``tail`` stand before and behind what is written, ``edits`` are made elsewhere.
    """

    wants: Wants
    path: Path
    start: int
    end: int
    document: Document
    """The document, with a closing quote where one is missing behind the cursor."""
    container: Object | Array | None = None
    member: Member | None = None
    """The member that is being typed, or whose value is."""
    quote: str = ""
    """The quote that what is replaced starts with."""
    lead: str = ""
    tail: str = ""
    edits: tuple[TextEdit, ...] = ()
    value: Node | None = None
    """The value that is there already."""


def find(document: Document, offset: int) -> Spot | None:
    """Return the spot at ``offset``; None where nothing could be written."""
    document, place, cut = _completed(document, _place(document, offset), offset)
    if len(place.path) > MOST_LEVELS or any(isinstance(part, str) and _is_odd(part) for part in place.path[:-1]):
        return None
    spot = _spot(document, place, offset)
    return spot if spot is None or cut is None or spot.end <= cut else replace(spot, end=spot.end - 1)


def _place(document: Document, offset: int) -> Place:
    """Return the place at an offset; between two keys that touch, the one that is being typed."""
    place = document.place_at(offset)
    if place.where is Where.KEY and place.start == offset > 0:
        before = document.place_at(offset - 1)
        if before.where is Where.KEY and before.end == offset and before.member and before.member.colon is None:
            return before
    return place


def _is_odd(name: str) -> bool:
    """Tell whether a name would read as several in a dotted path."""
    return "." in name or "[]" in name


def _completed(document: Document, place: Place, offset: int) -> tuple[Document, Place, int | None]:
    """Return the document with the quote that the string at the cursor lacks, its place, and where the quote came."""
    node = place.node
    if isinstance(node, Key) and node.style is Style.BARE and '"' in node.raw:
        word = _WORD.match(document.text, node.start)
        cut = word.end() if word else offset
        if node.start <= offset <= cut:
            mended = document.edit(cut, cut, " ")
            return mended, mended.place_at(offset), cut
    if not isinstance(node, Key | Scalar) or node.style not in {Style.DOUBLE, Style.SINGLE}:
        return document, place, None
    if not (node.start < offset and (offset < node.end or place.unfinished)):
        return document, place, None
    quote = node.raw[0]
    line = _LINE_REST.match(document.text, offset)
    rest = line[0] if line else ""
    closed = len(re.findall(rf"(?<!\\){quote}", rest)) % 2 == 1
    if closed and not place.unfinished:
        return document, place, None
    word = _WORD.match(document.text, offset)
    cut = word.end() if word else offset
    mended = document.edit(cut, cut, quote)
    return mended, mended.place_at(offset), cut


def _spot(document: Document, place: Place, offset: int) -> Spot | None:
    where = place.where
    if where is Where.OUTSIDE:
        return Spot(Wants.FILE, (), offset, offset, document) if document.root is None else None
    if place.container is None:
        return _whole_file(document, place, offset)
    if where is Where.KEY:
        return _key(document, place)
    if where is Where.KEY_GAP or where is Where.AFTER_VALUE:
        return _key_gap(document, place, offset)
    if where in {Where.VALUE, Where.VALUE_GAP, Where.COLON_GAP}:
        return _value(document, place, offset)
    return None


def _whole_file(document: Document, place: Place, offset: int) -> Spot | None:
    """Return the spot of a word that is the whole text."""
    node = place.node
    if not isinstance(node, Scalar) or place.where is not Where.VALUE or gaps.has_line_end(document.text, node):
        return None
    if node.start > offset or node.style is Style.MULTILINE:
        return None
    return Spot(Wants.FILE, (), node.start, node.end, document, quote=_quote(node))


def _key(document: Document, place: Place) -> Spot | None:
    key, member, container = place.node, place.member, place.container
    if not isinstance(key, Key) or member is None or not isinstance(container, Object):
        return None
    start, end, path, quote = key.start, key.end, place.path[:-1], _quote(key)
    if gaps.has_line_end(document.text, key):
        return None
    if len(container) == 1 and not container.has_braces and member.colon is None and member.node is None:
        return Spot(Wants.FILE, (), start, end, document, quote=quote)
    if member.node is not None:
        tail = ":" if member.colon is None else ""
        return Spot(Wants.NAME, path, start, end, document, container, member, quote, tail=tail, value=member.node)
    if member.colon is not None:
        if gaps.breaks(document.text, end, member.colon):
            return None
        end = member.colon + 1
    around = gaps.around(document, container, gaps.Gap(member.index - 1, member.index + 1, start, end, member.comma))
    return Spot(Wants.KEY, path, start, end, document, container, member, quote, around.lead, around.tail, around.edits)


def _key_gap(document: Document, place: Place, offset: int) -> Spot | None:
    container = place.container
    if not isinstance(container, Object):
        return None
    before, after = place.index - 1, place.index
    if place.where is Where.AFTER_VALUE and not _is_free(document, container, before, offset, place):
        return None
    around = gaps.around(document, container, gaps.Gap(before, after, offset, offset))
    return Spot(
        Wants.KEY, place.path, offset, offset, document, container, None, "", around.lead, around.tail, around.edits
    )


def _is_free(document: Document, container: Object, before: int, offset: int, place: Place) -> bool:
    """Tell whether a key can follow on the line of a value: a blank stands between, and no comma behind."""
    if not place.needs_comma or before < 0:
        return False
    previous = container.member(before)
    between = document.text[previous.end : offset]
    return bool(between) and not between.strip(" \t") and not gaps.takes_the_line(previous)


def _value(document: Document, place: Place, offset: int) -> Spot | None:
    """Return the spot of a value: what is there is replaced, unless it goes over a line end."""
    member, start, end, quote = place.member, offset, offset, ""
    node: Node | None = place.node if isinstance(place.node, Object | Array | Scalar) else None
    path = place.path
    if member is not None:
        node = member.node
        if member.key is None or (place.where is Where.COLON_GAP and member.colon is not None):
            return None
        path = (*path, member.name or "") if place.where is Where.COLON_GAP else path
    if node is not None:
        if not isinstance(node, Scalar) or gaps.breaks(document.text, min(offset, node.start), node.end):
            return None
        start, end = min(offset, node.start), max(offset, _written_end(node))
        quote = _quote(node) if start == node.start else ""
    spot = Spot(Wants.VALUE, path, start, end, document, place.container, member, quote, value=node)
    if isinstance(place.container, Array):
        return _element(spot, place.container, filled=place.where is Where.VALUE)
    return spot if member is None or place.container is None else _member(spot, place.container, member)


def _element(spot: Spot, container: Array, *, filled: bool) -> Spot:
    """Return the spot of an element of a list, with the commas that it needs."""
    index = spot.path[-1] if isinstance(spot.path[-1], int) else 0
    comma = container.comma(index) if filled and index < len(container) else None
    behind = index + 1 if filled else index
    around = gaps.around(spot.document, container, gaps.Gap(index - 1, behind, spot.start, spot.end, comma))
    return replace(spot, lead=around.lead, tail=around.tail, edits=around.edits)


def _member(spot: Spot, container: Object, member: Member) -> Spot:
    """Return the spot of the value of a member, with the colon, the comma and the blank that it needs."""
    text, key, lead = spot.document.text, member.key, ""
    edits: tuple[TextEdit, ...] = ()
    if member.colon is None and key is not None:
        edits = (TextEdit(key.end, key.end, ":"),)
        lead = " " if spot.start == key.end else ""
    elif text[spot.start - 1] == ":" and gaps.is_airy(container):
        lead = " "
    cut = text[spot.end : member.end].strip(" \t").startswith(",")
    tail = gaps.tail(spot.document, container, member.index + 1, spot.end, spot.end if cut else member.comma)
    return replace(spot, lead=lead, tail=tail, edits=edits)


def _written_end(node: Scalar) -> int:
    """Return the end of a value without the comma that a string without quotes takes with it."""
    if node.style is not Style.BARE or not node.raw.rstrip().endswith(","):
        return node.end
    return node.start + len(node.raw.rstrip(", \t"))


def _quote(node: Key | Scalar) -> str:
    return node.raw[:1] if node.style in {Style.DOUBLE, Style.SINGLE} else ""
