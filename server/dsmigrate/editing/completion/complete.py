"""Completion: what could be written at an offset."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.completion import free_names, keys, own, relevance, sections, starters, values
from dsmigrate.editing.completion.item import Item
from dsmigrate.editing.completion.scene import Scene, scene
from dsmigrate.editing.completion.spot import Wants, find
from dsmigrate.editing.view import View


def complete(view: View, offset: int, *, snippets: bool) -> tuple[Item, ...]:
    """Return what could be written at ``offset`` of the text of ``view``, best first; nothing where nothing fits.

    An offset outside is moved to the next end.
    ``snippets`` says whether the client knows tab stops. A key that the file cannot do without is preselected.
    """
    spot = find(view.document, min(max(offset, 0), len(view.text)))
    if spot is None:
        return ()
    found = sorted(_items(scene(view, spot, snippets=snippets)), key=_order)
    if found and spot.wants is Wants.KEY and found[0].sort_text.startswith(str(relevance.FIRST)):
        found[0] = found[0]._replace(preselect=True)
    return tuple(found)


def _items(around: Scene) -> Iterator[Item]:
    spot = around.spot
    if spot.wants is Wants.FILE:
        yield from starters.items(around, first=True)
    elif spot.wants is Wants.VALUE:
        yield from values.items(around)
        yield from own.values(around)
    else:
        missing = tuple(keys.missing(around))
        yield from keys.items(missing, around)
        yield from own.keys(around)
        if spot.wants is Wants.KEY:
            yield from sections.items(missing, around)
            yield from free_names.items(around)
            if not spot.path and _is_empty(around):
                yield from starters.items(around, first=False)


def _is_empty(around: Scene) -> bool:
    return around.container is not None and len(around.container) == (around.spot.member is not None)


def _order(item: Item) -> str:
    return item.sort_text
