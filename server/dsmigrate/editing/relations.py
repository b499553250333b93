"""Keys that depend on each other: what "go to definition" and "find references" mean in a config."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key
from dsmigrate.rules.context import Entry

Span = tuple[int, int]


def entry_at(view: View, offset: int) -> Entry | None:
    """Return the member with a known key whose key or value lies at ``offset``, the innermost one."""
    document = view.document
    place = document.place_at(offset)
    if place.member is None or place.member.name is None:
        return None
    return next((entry for entry in view.context.entries if entry.member == place.member), None)


def depends_on(view: View, offset: int) -> tuple[Span, ...]:
    """Return the keys of this file that decide about the key at ``offset``, as ranges of their members.

    Those that make it effective come first (the stage, the switch of its section), then those that are derived together
    with it (the other batch keys). A key that nothing decides about leads to itself.
    """
    entry = entry_at(view, offset)
    if entry is None:
        return ()
    key = _key(view, entry)
    found = _spans(view, (*key.effective_when, *key.related)) if key is not None else []
    return tuple(span for span in found if span != _span(entry)) or (_span(entry),)


def references(view: View, offset: int, *, itself: bool) -> tuple[Span, ...]:
    """Return the keys of this file that depend on the key at ``offset``, or belong together with it, in order.

    ``itself`` adds the key.
    """
    entry = entry_at(view, offset)
    if entry is None:
        return ()
    key = _key(view, entry)
    path = key.path if key is not None else ".".join(map(str, entry.path))
    found = set(_spans(view, key.related)) if key is not None else set()
    for other in view.context.entries:
        facts = _key(view, other)
        if facts is not None and facts.path != path and (path in facts.effective_when or path in facts.related):
            found.add(_span(other))
    own = _span(entry)
    found.discard(own)
    return tuple(sorted(found | {own} if itself else found))


def highlights(view: View, offset: int) -> tuple[Span, ...]:
    """Return, without values, the key at ``offset``, what it depends on, what depends on it, and its equals.

    Equals are keys that name each other, such as the batch keys; a section is none.
    """
    entry = entry_at(view, offset)
    if entry is None:
        return ()
    found = [entry.member.key]
    key = _key(view, entry)
    for other in view.context.entries:
        facts = _key(view, other)
        if key is None or facts is None:
            continue
        decides = key.path in facts.effective_when or facts.path in key.effective_when
        is_equal = key.path in facts.related and facts.path in key.related
        if decides or (is_equal and not (key.is_section or facts.is_section)):
            found.append(other.member.key)
    return tuple(sorted({(name.start, name.end) for name in found if name is not None}))


def _key(view: View, entry: Entry) -> Key | None:
    key = entry.key
    return view.known.key(key.alias_of) if key is not None and key.alias_of else key


def _spans(view: View, paths: Iterable[str]) -> list[Span]:
    entries = (view.context.entry(path) for path in paths)
    return [_span(entry) for entry in entries if entry is not None]


def _span(entry: Entry) -> Span:
    return entry.member.start, entry.member.end
