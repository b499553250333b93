"""The item of a single value."""

from __future__ import annotations

from collections.abc import Mapping

from dsmigrate.editing.completion.body import escaped, scalar
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.item import Data, Item
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.languages import say


def item(
    choice: Choice,
    number: int,
    about: Data,
    scene: Scene,
    *,
    stands: str = "",
    needed: Mapping[str, object] | None = None,
) -> Item:
    """Return the item of a value; ``number`` is its place in the list, ``needed`` are neighbours that come with it.

    ``stands`` is the whole value that it would replace, "" when that is only half typed. Clients keep the items that
    match what stands before the cursor, and beside a whole value all others are wanted: so their filter texts start
    with it.
    """
    plain = choice.body.plain
    shown = plain
    if plain.startswith('"'):
        inner = plain[1:-1]
        shown = f"{scene.spot.quote}{inner}{scene.spot.quote}" or plain
    snippet = scene.page.snippets and (choice.value in ("", []) or bool(needed))
    page = scene.page
    between = ", " if page.inline else f",{page.newline}{page.indent}"
    text = choice.body.snippet if snippet and not needed else escaped(plain) if snippet else plain
    members = [scene.member(name, scalar(value)) for name, value in (needed or {}).items()]
    return scene.item(
        plain,
        choice.kind,
        between.join([text, *members]),
        sort=f"{number:02}",
        filters=f"{stands} {shown}" if stands and stands != plain else shown,
        detail=choice.meaning,
        description=say("with {names}", names=say(", ").join(needed)) if needed else choice.note,
        data=about,
        snippet=snippet,
    )
