"""Names of one's own: the metrics of curriculum learning, the groups of a compression."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.completion import data, keys, refusals, skeletons
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.knowledge import Status
from dsmigrate.languages import say


def items(scene: Scene) -> Iterator[Item]:
    """Yield a member for each name that is usual in the object at the spot, where any name will do."""
    section = keys.path_of(scene)
    if not section or scene.container is None or not scene.known.takes_any_name(section):
        return
    own = f"{section}.*"
    key = scene.known.key(own)
    if key is not None and key.status is not Status.PRESENT:
        return
    starters = data.sections(own, scene.known)
    start = starters[0] if starters else skeletons.skeletons(own, "", scene.known, scene.consumer)[0]
    if refusals.is_start_refused(scene.situation, start):
        return
    body = skeletons.body(start, scene.page.spelling)
    there = keys.present(scene)
    for name, meaning in data.names(section).items():
        if name not in there:
            yield scene.item(
                name,
                Kind.SECTION,
                scene.member(name, body),
                sort=f"1{name}",
                detail=meaning,
                description=say("any name will do"),
                data=("key", own if key is not None else section),
                again=body.is_open,
            )
