"""The key ``_dsmigrate`` that leaves a rule out, for files without comments; what it holds already stays."""

from __future__ import annotations

from dsmigrate.checking.suppression import KEY
from dsmigrate.document import Document, EditError, Object, Path, PathError, Scalar, TextEdit, parse_path, render_path
from dsmigrate.document import edits as editing

EVERYWHERE = "ignore"
AT = "ignore-at"


def can_name(path: Path) -> bool:
    """Return whether a path is one that the key can name; the empty one would be the whole file."""
    try:
        return bool(path) and parse_path(render_path(path)) == path
    except PathError:
        return False


def edits(document: Document, code: str, path: Path | None) -> tuple[TextEdit, ...]:
    """Return the edits that leave ``code`` out at and below ``path``, or in the whole file for None.

    Raises EditError when the text, or what stands at the key, does not allow it.
    """
    place: Path = (KEY, EVERYWHERE)
    if path is not None:
        place = (KEY, AT, _name(document, path))
    for size in (1, 2):
        around = document.node_at(place[:size])
        if size < len(place) and around is not None and not isinstance(around, Object):
            raise EditError(f"{render_path(place[:size])} is not an object")
    there = document.node_at(place)
    if there is None:
        return editing.insert(document, place, [code])
    listed = there.value()
    if isinstance(there, Scalar) and isinstance(listed, str) and listed.strip():
        return editing.replace(document, place, f"{listed},{code}")
    return editing.replace(document, place, [*listed, code] if isinstance(listed, list) else [code])


def _name(document: Document, path: Path) -> str:
    """Return the name that the file has for a path, or that it would get."""
    named = document.node_at((KEY, AT))
    for member in named if isinstance(named, Object) else ():
        try:
            if parse_path(member.name or "") == path:
                return member.name or ""
        except PathError:
            continue
    return render_path(path)
