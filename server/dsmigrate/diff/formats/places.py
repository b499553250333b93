"""Where a change is on both sides, and where its explanation is documented."""

from __future__ import annotations

from dsmigrate.checking.formats.places import Span, span
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Change, Explained, Kind, Spot
from dsmigrate.document import Encoding, Object, render_path
from dsmigrate.editing.view import View

DOCS = "https://github.com/dsmigrate/dsmigrate/blob/main/docs/changes"


def url(code: str) -> str:
    """Return the page of an explanation."""
    return f"{DOCS}/{code}.md"


def spans(
    compared: Compared, change: Change | None, encoding: Encoding = Encoding.UTF16
) -> tuple[Span | None, Span | None]:
    """Return the range of a change on both sides, None where a side does not have the key."""
    if change is None:
        return None, None
    sides = (compared.old, change.old_spot), (compared.new, change.new_spot)
    old, new = (None if spot is None else span(view.document, spot.start, spot.end, encoding) for view, spot in sides)
    return old, new


def place(compared: Compared, said: Explained) -> tuple[Spot | None, Spot | None]:
    """Return where both files have what an explanation is about, changed or not."""
    path = said.paths[0]
    change = compared.result.changes.get(path)
    if change is not None:
        return change.old_spot, change.new_spot
    found = []
    for view in (compared.old, compared.new):
        entry = view.context.entry(path)
        found.append(_node(view, path) if entry is None else Spot(entry.path, entry.member.start, entry.member.end))
    return found[0], found[1]


def _node(view: View, path: str) -> Spot | None:
    """Return the place of a key that nobody knows."""
    names = tuple(path.split("."))
    node = view.document.node_at(names)
    return None if node is None else Spot(names, node.start, node.end)


def names(path: str, change: Change) -> tuple[str, ...]:
    """Return what the files call a key: the old and the new name where they differ."""
    if change.kind is Kind.RENAMED and change.old_spot is not None and change.new_spot is not None:
        return render_path(change.old_spot.path), render_path(change.new_spot.path)
    return (path,)


def texts(compared: Compared, change: Change) -> tuple[object, object]:
    """Return both values as the files have them: of a key with another name on each side, what stands there."""
    if change.kind is not Kind.RENAMED:
        return change.old, change.new
    sides = (compared.old, change.old_spot, change.old), (compared.new, change.new_spot, change.new)
    nodes = [(None if spot is None else view.document.node_at(spot.path), value) for view, spot, value in sides]
    old, new = (value if node is None or isinstance(node, Object) else node.value() for node, value in nodes)
    return old, new


def line(view: View, spot: Spot) -> int:
    """Return the one-based line of a place."""
    return view.document.position(spot.start, Encoding.UTF32).line + 1
