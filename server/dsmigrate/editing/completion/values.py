"""Values for a key: what it takes, with what each means, without those that DeepSpeed refuses beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dsmigrate.document import Array
from dsmigrate.editing.completion import batch, elements, objects, refusals, types
from dsmigrate.editing.completion.body import spelled
from dsmigrate.editing.completion.choices import Choice, choices, parameter_choices, takes
from dsmigrate.editing.completion.data import sections
from dsmigrate.editing.completion.foreign import is_foreign_name
from dsmigrate.editing.completion.item import Data, Item
from dsmigrate.editing.completion.keys import present
from dsmigrate.editing.completion.members import is_object
from dsmigrate.editing.completion.scalars import item
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.knowledge import Status
from dsmigrate.rules.context import TYPED


def items(scene: Scene) -> Iterator[Item]:
    """Yield what could stand at a spot for a value."""
    path = scene.spot.path
    if isinstance(scene.spot.container, Array):
        yield from elements.items(scene.spot.container, scene)
    elif len(path) == 2 and path[0] in TYPED and path[1] == "type":
        yield from types.items(str(path[0]), scene)
    elif len(path) == 3 and path[0] in TYPED and path[1] == "params":
        yield from _parameter(str(path[0]), str(path[2]), scene)
    else:
        yield from _of_key(scene)


def _of_key(scene: Scene) -> Iterator[Item]:
    key = scene.known.key(scene.spot.path)
    around = scene.spot.path[:-1]
    if key is None and around and scene.known.takes_any_name(around):
        yield from objects.items(f"{scene.known.canonical(around)}.*", scene)
    if key is None or key.status not in {Status.PRESENT, Status.DEPRECATED}:
        return
    canonical = key.alias_of or key.path
    if is_object(key) or key.alias_of is not None:
        yield from objects.items(canonical, scene)
        return
    found: Sequence[Choice] = choices(canonical, scene.known, scene.consumer)
    if canonical in batch.DECISIVE:
        every = _distinct((*batch.computed(canonical, scene.situation), *found))
        found = [choice for choice in every if batch.is_fitting(canonical, choice.value, scene.situation)]
    yield from _chosen(canonical, found, ("value", canonical), scene)


def _distinct(found: Sequence[Choice]) -> Sequence[Choice]:
    return list({spelled(choice.value): choice for choice in reversed(found)}.values())[::-1]


def _parameter(kind: str, name: str, scene: Scene) -> Iterator[Item]:
    facts = scene.situation.facts_of(kind)
    if facts is None or name not in facts.parameters or is_foreign_name(kind, name, scene.situation):
        return
    found = parameter_choices(kind, facts.name, name, scene.known, scene.consumer)
    yield from _chosen(f"{kind}.params.{name}", found, ("parameter", kind, facts.name, name), scene)


def _chosen(path: str, found: Sequence[Choice], about: Data, scene: Scene) -> Iterator[Item]:
    value = scene.spot.value
    raw = "" if value is None else value.raw
    stands = raw if any(raw == choice.body.plain for choice in found) else ""
    place = scene.spot.path
    works = takes(scene.known.auto(place, scene.consumer), scene.known.key(place))
    for number, choice in enumerate(found):
        if (choice.unless and scene.situation.has(choice.unless)) or (choice.value == "auto" and not works):
            continue
        data = (*about, spelled(choice.value))
        if not refusals.is_choice_refused(scene.situation, path, choice):
            yield item(choice, number, data, scene, stands=stands)
        elif needed := _needed(path, choice, scene):
            yield item(choice, number, data, scene, stands=stands, needed=needed)


def _needed(path: str, choice: Choice, scene: Scene) -> Mapping[str, object]:
    """Return the neighbours, as starters of the section have them, with which a value is not refused; {} for none."""
    section, _, name = path.rpartition(".")
    there = present(scene)
    for starter in sections(section, scene.known):
        if starter.value.get(name) != choice.value:
            continue
        needed: dict[str, object] = {}
        for other, value in starter.value.items():
            if other == name or other in there or isinstance(value, Mapping):
                continue
            needed[other] = value
            assigned = {path: choice.value, **{f"{section}.{key}": with_it for key, with_it in needed.items()}}
            if not refusals.is_refused(scene.situation, assigned):
                return needed
    return {}
