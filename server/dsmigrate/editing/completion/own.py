"""Keys and values that a JSON Schema of the project describes, in what an application puts into the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsmigrate.editing.completion.body import Body, scalar, section
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.keys import present
from dsmigrate.editing.completion.scalars import item
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.editing.completion.spot import Wants
from dsmigrate.rules import OwnSchema

_EMPTY: Mapping[str, Body] = {
    "object": section({}),
    "array": scalar([]),
    "string": scalar(""),
    "boolean": scalar(True),  # noqa: FBT003 - a value
    "integer": scalar(0),
    "number": scalar(0),
}


def keys(scene: Scene) -> Iterator[Item]:
    """Yield the keys that schemas describe in the object at the spot, and that it does not have yet."""
    there = present(scene)
    for schema in scene.situation.facts.schemas:
        for name, facts in _members(schema, scene):
            if isinstance(facts, Mapping) and name not in there and scene.known.key((*scene.spot.path, name)) is None:
                body = _body(facts)
                text = scene.page.spelling.key(name) if scene.spot.wants is Wants.NAME else scene.member(name, body)
                yield scene.item(
                    name,
                    Kind.SECTION if facts.get("type") == "object" else Kind.KEY,
                    text,
                    sort=f"1{name}",
                    detail=_told(facts),
                    description=schema.name,
                    again=body.is_open,
                )


def values(scene: Scene) -> Iterator[Item]:
    """Yield the values that schemas list for the key at the spot."""
    if scene.known.key(scene.spot.path) is not None:
        return
    for schema in scene.situation.facts.schemas:
        facts = schema.described(scene.spot.path)
        for number, value in enumerate(_listed(facts) if facts is not None else ()):
            yield item(Choice(value, scalar(value), Kind.CHOICE), number, (), scene)


def _members(schema: OwnSchema, scene: Scene) -> Iterator[tuple[str, Any]]:
    around = schema.described(scene.spot.path) if scene.spot.path else schema.content
    inside = around.get("properties") if around is not None else None
    if isinstance(inside, Mapping):
        yield from inside.items()


def _listed(facts: Mapping[str, Any]) -> list[object]:
    listed = facts.get("enum", [facts["const"]] if "const" in facts else [])
    found = list(listed) if isinstance(listed, list) else []
    found += [True, False] if facts.get("type") == "boolean" and not found else []
    found += [facts["default"]] if "default" in facts and facts["default"] not in found else []
    return [value for value in found if value is None or isinstance(value, (str, bool, int, float))]


def _body(facts: Mapping[str, Any]) -> Body:
    listed = [facts["default"]] if "default" in facts else _listed(facts)
    if listed and (listed[0] is None or isinstance(listed[0], (str, bool, int, float))):
        return scalar(listed[0])
    kind = facts.get("type")
    return _EMPTY.get(kind if isinstance(kind, str) else "string", _EMPTY["string"])


def _told(facts: Mapping[str, Any]) -> str:
    told = facts.get("title") or facts.get("description") or ""
    return str(told).partition("\n")[0]
