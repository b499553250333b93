"""The item of a single value."""

from __future__ import annotations

from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.item import Data, Item
from dsmigrate.editing.completion.scene import Scene


def item(choice: Choice, number: int, about: Data, scene: Scene, *, stands: str = "") -> Item:
    """Return the item of a value; ``number`` is its place in the list.

    ``stands`` is the whole value that it would replace, "" when that is only half typed. Clients keep the items that
    match what stands before the cursor, and beside a whole value all others are wanted: so their filter texts start
    with it.
    """
    plain = choice.body.plain
    shown = plain
    if plain.startswith('"'):
        inner = plain[1:-1]
        shown = f"{scene.spot.quote}{inner}{scene.spot.quote}" or plain
    snippet = scene.page.snippets and choice.value in ("", [])
    return scene.item(
        plain,
        choice.kind,
        choice.body.snippet if snippet else plain,
        sort=f"{number:02}",
        filters=f"{stands} {shown}" if stands and stands != plain else shown,
        detail=choice.meaning,
        description=choice.note,
        data=about,
        snippet=snippet,
    )
