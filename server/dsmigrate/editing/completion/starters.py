"""Whole configs, for a file that has nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.completion import data, refusals, skeletons
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.scene import Scene


def items(scene: Scene, *, first: bool) -> Iterator[Item]:
    """Yield the starters for the reader of the file; ``first`` puts them before everything else.

    In a root object that is there and empty only its members are written.
    """
    for number, starter in enumerate(data.files(scene.known, scene.consumer)):
        if refusals.is_start_refused(scene.situation, starter):
            continue
        text = scene.page.text(skeletons.body(starter, scene.page.spelling))
        yield scene.item(
            starter.label,
            Kind.FILE,
            text if scene.container is None else _members(text, scene),
            sort=f"{0 if first else 7}{number:02}",
            detail=starter.summary,
            description="config",
            data=("file", starter.label),
        )


def _members(text: str, scene: Scene) -> str:
    """Return the members of an object without its braces, a level further out: they stand at the indent of the page."""
    page = scene.page
    inner = text[1:-1].rstrip().replace(f"{page.newline}{page.indent}{page.unit}", f"{page.newline}{page.indent}")
    return inner.removeprefix(f"{page.newline}{page.indent}")
