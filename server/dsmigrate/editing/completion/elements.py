"""Elements of a list: those of a closed list that are not in it yet, and objects where they belong."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Array
from dsmigrate.editing.completion import objects
from dsmigrate.editing.completion.body import scalar, spelled
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.scalars import item
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.knowledge import Key

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}


def items(around: Array, scene: Scene) -> Iterator[Item]:
    """Yield elements for the list ``around`` the spot."""
    spot = scene.spot
    key = scene.known.key(spot.path[:-1])
    if key is None:
        return
    if key.is_section and "array" in key.type:
        yield from objects.elements(f"{key.path}[]", scene)
        return
    there = [child.value() for child in around if spot.value is None or child.start != spot.value.start]
    wanted = [value for value in _values(key) if value not in there and _is_element(key, value)]
    for number, value in enumerate(wanted):
        choice = Choice(value, scalar(value), Kind.CHOICE, key.values.get(str(value), ""))
        yield item(choice, number, ("value", key.path, spelled(value)), scene)


def _values(key: Key) -> list[object]:
    found: list[object] = list(key.item_enum)
    for suggestion in key.suggestions:
        value = suggestion["value"]
        found += value if isinstance(value, list) else [value]
    if isinstance(key.default, list):
        found += key.default
    return list({spelled(value): value for value in found}.values())


def _is_element(key: Key, value: object) -> bool:
    kinds = set(key.items)
    name = _NAMES.get(type(value), "null")
    return not kinds or "any" in kinds or name in kinds or (name == "integer" and "number" in kinds)
