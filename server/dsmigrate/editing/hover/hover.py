"""The hover at an offset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from dsmigrate.editing.hover import keys, own, types, unknown
from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.hover.target import Target, root_at, target_at
from dsmigrate.editing.summary import details
from dsmigrate.editing.view import View
from dsmigrate.languages import say


@dataclass(frozen=True, slots=True)
class Hover:
    """Offsets of what is explained, and the explanation in Markdown; ``plain`` makes text of it."""

    start: int
    end: int
    markdown: str


def hover_at(view: View, offset: int, links: Links | None = None) -> Hover | None:
    """Return what there is to say at ``offset``, None when there is nothing; ``links`` lead to the web by default.

    Rules are not run for it; what those that have run already say at the place is not said again.
    """
    target = target_at(view, offset)
    if target is None:
        brace = root_at(view, offset)
        return None if brace is None else Hover(brace, brace + 1, _file(view))
    markdown = "\n\n".join(part for part in _parts(view, links or Links(), target) if part)
    return Hover(target.start, target.end, markdown) if markdown else None


def _file(view: View) -> str:
    return "\n".join(say("- {name}: {said}", name=name, said=said) for name, said in details(view))


def _parts(view: View, links: Links, target: Target) -> Iterator[str]:
    if target.parameter is not None:
        return types.parameter_parts(view, links, target, target.parameter)
    if target.is_type_name and target.type_facts is not None:
        return types.type_parts(view, links, target, target.type_facts)
    if target.is_type_name and target.key is not None:
        return chain(unknown.type_parts(view, target), keys.parts(view, links, target, target.key))
    if target.key is not None:
        return keys.parts(view, links, target, target.key)
    return iter(tuple(own.parts(view, target.path)) or unknown.parts(view, links, target))
