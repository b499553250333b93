"""What lies under the cursor: a key or a value, and what the knowledge has about it."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Array, Document, Member, Node, Object, Path, Scalar, Where
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key, Parameter, TypeFacts

_TYPED = ("optimizer", "scheduler")


@dataclass(frozen=True, slots=True)
class Target:
    """A key or a value. ``path`` leads to the member, ``item`` is the number of the list item under the cursor.

    ``value`` is what lies under the cursor where that is a scalar value, and ``node`` the value of the member.
    """

    path: Path
    start: int
    end: int
    node: Node | None
    value: Scalar | None = None
    item: int | None = None
    on_value: bool = False
    key: Key | None = None
    parameter: Parameter | None = None
    type_facts: TypeFacts | None = None
    """The type that the optimizer or scheduler section around it names, of whatever release."""

    @property
    def name(self) -> str:
        """The key as it is written."""
        return str(self.path[-1])

    @property
    def is_type_name(self) -> bool:
        """Whether it is the value of ``optimizer.type`` or ``scheduler.type``."""
        return self.on_value and len(self.path) == 2 and self.path[0] in _TYPED and self.path[1] == "type"

    @property
    def is_parameter(self) -> bool:
        """Whether it is a member of the ``params`` of an optimizer or scheduler."""
        return len(self.path) == 3 and self.path[0] in _TYPED and self.path[1] == "params"


def target_at(view: View, offset: int) -> Target | None:
    """Return what lies at ``offset``; None between keys and values, in comments, and outside of the root."""
    if view.overlaid:
        return _overlaid(view, offset)
    place = view.document.place_at(offset)
    if place.where not in {Where.KEY, Where.VALUE} or place.node is None or not place.path:
        return None
    on_value = place.where is Where.VALUE
    path, item = _member_path(place.path)
    if not path or not str(path[-1]):
        return None
    member = place.member if item is None else _list_member(view.document, path)
    node = member.node if member is not None else None
    value = place.node if on_value and isinstance(place.node, Scalar) else None
    end = place.end if not on_value or value is not None else min(place.start + 1, place.end)
    key, parameter, facts = _known(view, path)
    return Target(path, place.start, end, node, value, item, on_value, key, parameter, facts)


def _overlaid(view: View, offset: int) -> Target | None:
    """Return the key with a value of its own whose field of another form lies at ``offset``, on one line with it."""
    for path, member, node in view.document.walk():
        if member is None or member.key is None or not isinstance(node, Scalar) or not all(map(_is_name, path)):
            continue
        on_value = node.start <= offset <= node.end
        if "\n" in view.text[node.start : node.end] or not (on_value or member.key.start <= offset <= member.key.end):
            continue
        start, end = (node.start, node.end) if on_value else (member.key.start, member.key.end)
        key, parameter, facts = _known(view, path)
        value = node if on_value else None
        return Target(path, start, end, node, value, None, on_value, key, parameter, facts)
    return None


def _is_name(part: str | int) -> bool:
    return isinstance(part, str)


def root_at(view: View, offset: int) -> int | None:
    """Return the offset of the brace of the root, when ``offset`` is there."""
    root = view.document.root
    here = isinstance(root, Object) and root.has_braces and len(root) and offset == root.start
    return root.start if root is not None and here else None


def _member_path(path: Path) -> tuple[Path, int | None]:
    """Return the path without the list indexes at its end, and the first of those."""
    end = len(path)
    while end and isinstance(path[end - 1], int):
        end -= 1
    index = path[end] if end < len(path) else None
    return path[:end], index if isinstance(index, int) else None


def _list_member(document: Document, path: Path) -> Member | None:
    member = document.member_at(path)
    return member if member is not None and isinstance(member.node, Array) else None


def _known(view: View, path: Path) -> tuple[Key | None, Parameter | None, TypeFacts | None]:
    section = path[0]
    facts = view.context.type_of("optimizer" if section == "optimizer" else "scheduler") if section in _TYPED else None
    if len(path) == 3 and section in _TYPED and path[1] == "params":
        parameter = facts.parameters.get(str(path[2])) if facts is not None else None
        return view.known.key(path), parameter, facts
    return view.known.key(path), None, facts
