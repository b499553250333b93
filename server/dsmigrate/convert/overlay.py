"""Settings as a document: DeepSpeed's keys, at the places where another form has them.

Rules, the diff and their reports work on documents. This one's tree is that of the DeepSpeed config, while its text and
every offset are those of the file. Nothing can be edited in it: what would be edited is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsmigrate.convert.model import Place, Settings
from dsmigrate.document import Document, Path
from dsmigrate.document.reading import Tree
from dsmigrate.document.shapes import ContainerShape, MemberShape, ScalarShape, Style, ValueShape

_DEEPEST = 64


def overlay(settings: Settings, whole: Place) -> Document:
    """Return the document; keys that have no place in ``settings`` stand at that of their section, or at ``whole``.

    Numbers that JSON cannot spell are left out.
    """
    places = _spread(settings.places)
    top = ContainerShape(is_object=False)
    top.width = len(settings.text)
    root = _section(settings.config, (), whole, places)
    top.children, top.starts, top.commas = [root], [whole.start], [-1]
    top.height = root.height + 1
    return Document(settings.text, Tree(top, divisible=False))


def _spread(places: Mapping[Path, Place]) -> dict[Path, Place]:
    """Return the places, with those of sections from what is in them: the key of the first one, the values of all."""
    found = dict(places)
    for path, place in places.items():
        for size in range(1, len(path)):
            section = path[:size]
            if section in places:
                continue
            so_far = found.get(section, place)
            found[section] = Place(
                min(so_far.key_start, place.key_start),
                so_far.key_end if so_far.key_start <= place.key_start else place.key_end,
                min(so_far.start, place.start),
                max(so_far.end, place.end),
            )
    return found


def _section(config: Mapping[str, Any], path: Path, at: Place, places: Mapping[Path, Place]) -> ContainerShape:
    shape = ContainerShape(is_object=True)
    shape.width = at.end - at.start
    shape.closed = True
    for name, value in config.items():
        here = (*path, name)
        place = places.get(here, Place(at.key_start, at.key_end, at.start, at.end))
        inner = _value(value, here, place, places)
        if inner is None:
            continue
        key = ScalarShape(name, place.key_end - place.key_start, Style.BARE)
        shape.starts.append(place.key_start - at.start)
        shape.children.append(MemberShape(key, place.key_end - place.key_start, place.start - place.key_start, inner))
        shape.commas.append(-1)
        _raise_height(shape, inner)
    return shape


def _value(value: object, path: Path, place: Place, places: Mapping[Path, Place]) -> ValueShape | None:
    if len(path) > _DEEPEST:
        return None
    if isinstance(value, dict):
        return _section(value, path, place, places)
    if isinstance(value, (list, tuple)):
        return _array(list(value), path, place, places)
    width = place.end - place.start
    if isinstance(value, bool) or value is None:
        return ScalarShape(value, width, Style.LITERAL)
    if isinstance(value, (int, float)):
        return ScalarShape(value, width, Style.NUMBER) if abs(value) != float("inf") else None
    return ScalarShape(str(value), width, Style.DOUBLE)


def _array(value: list[object], path: Path, place: Place, places: Mapping[Path, Place]) -> ContainerShape:
    shape = ContainerShape(is_object=False)
    shape.width = place.end - place.start
    shape.closed = True
    for index, item in enumerate(value):
        at = places.get((*path, index), place)
        inner = _value(item, (*path, index), at, places)
        if inner is None:
            continue
        shape.starts.append(at.start - place.start)
        shape.children.append(inner)
        shape.commas.append(-1)
        _raise_height(shape, inner)
    return shape


def _raise_height(shape: ContainerShape, inner: ValueShape) -> None:
    if isinstance(inner, ContainerShape):
        shape.height = max(shape.height, inner.height + 1)
