"""Objects for a section: ready to use, with the usual keys, empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsmigrate.editing.completion import refusals, sections, skeletons
from dsmigrate.editing.completion.body import Body
from dsmigrate.editing.completion.data import Skeleton
from dsmigrate.editing.completion.item import Data, Item, Kind
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.languages import say
from dsmigrate.rules.context import TYPED

_LIST = Body("[]", "[$0]", "[]", "[$0]", is_open=True)


def items(path: str, scene: Scene) -> Iterator[Item]:
    """Yield values for the section at a canonical path."""
    starters = sections.offered(path, scene)
    for number, starter in enumerate(starters):
        yield _item(
            scene,
            starter.label,
            skeletons.body(starter, scene.page.spelling),
            sort=f"0{number:02}",
            detail=starter.summary,
            data=("section", path, starter.label),
        )
    key = scene.known.key(path)
    if key is not None and "array" in key.type:
        yield _item(scene, "[]", _LIST, sort="900", detail=say("a list"), data=("key", path))
        return
    kind, _, rest = path.partition(".")
    facts = scene.situation.facts_of(kind) if kind in TYPED and rest == "params" else None
    starts = skeletons.skeletons(path, "" if facts is None else facts.name, scene.known, scene.consumer)
    ready = [starter.value for starter in starters]
    yield from _starts(path, [start for start in starts if start.value not in ready], scene)


def elements(path: str, scene: Scene) -> Iterator[Item]:
    """Yield objects for a list; ``path`` is that of its elements."""
    yield from _starts(path, skeletons.skeletons(path, "", scene.known, scene.consumer), scene)


def _starts(path: str, found: Iterable[Skeleton], scene: Scene) -> Iterator[Item]:
    other_name = scene.known.key(scene.spot.path)
    for number, skeleton in enumerate(found):
        if refusals.is_start_refused(scene.situation, skeleton):
            continue
        if other_name is not None and other_name.alias_of and "auto" in skeleton.leaves.values():
            continue  # a consumer fills it under the one name alone
        label = f"{{{', '.join(skeleton.value)}}}"
        body = skeletons.body(skeleton, scene.page.spelling)
        detail = "" if skeleton.value else "empty"
        yield _item(scene, label, body, sort=f"5{number:02}", detail=detail, data=("key", path))


def _item(scene: Scene, label: str, body: Body, *, sort: str, detail: str, data: Data) -> Item:
    text = scene.page.text(body)
    return scene.item(label, Kind.SNIPPET, text, sort=sort, detail=detail, data=data, again=body.is_open)
