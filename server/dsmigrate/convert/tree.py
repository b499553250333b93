"""Plain nested dictionaries by path."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dsmigrate.document import Path
from dsmigrate.document.numbers import in_json, spelled

_SURROGATES = re.compile("[\ud800-\udfff]")
MISSING = object()
"""What ``get`` returns for a path that is not there."""


def get(config: object, path: Sequence[str | int], default: object = MISSING) -> Any:  # noqa: ANN401 - whatever is there
    """Return the value at ``path``."""
    for part in path:
        in_list = isinstance(config, list) and isinstance(part, int) and 0 <= part < len(config)
        if not in_list and not (isinstance(config, Mapping) and part in config):
            return default
        config = config[part]  # type: ignore[index]
    return config


def put(config: dict[str, Any], path: Sequence[str | int], value: object) -> None:
    """Set the value at a path of keys, sections on the way included; a scalar on the way gives way."""
    *sections, last = path
    place: Any = config
    for part in sections:
        inner = place[part] if isinstance(part, int) else place.get(part)
        if not isinstance(inner, (dict, list)):
            inner = place[part] = {}
        place = inner
    place[last] = value


def drop(config: dict[str, Any], path: Sequence[str | int]) -> None:
    """Remove the value at a path, if it is there; sections that are empty then go as well."""
    holder = get(config, path[:-1], None)
    if isinstance(holder, dict) and path[-1] in holder:
        del holder[path[-1]]
        if not holder and len(path) > 1:
            drop(config, path[:-1])


def leaves(config: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield every value that is no section, with its path; an empty section, and a list, is a value."""
    waiting: list[tuple[Path, object]] = [(path, config)]
    while waiting:
        here, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [((*here, key), inner) for key, inner in reversed(value.items())]
        else:
            yield here, value


def autos(config: object) -> list[Path]:
    """Return the paths at which "auto" stands, those in lists left out, as consumers leave them out."""
    return [path for path, value in leaves(config) if value == "auto"]


def copied(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that shares nothing."""
    return copy.deepcopy(dict(config))


def same(one: object, other: object) -> bool:
    """Return whether two values are one to a loader that reads 1.0 as 1; true is no number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def dumped(value: object, indent: int | None = None, number: Callable[[Path, Any], str] | None = None) -> str:
    """Return JSON, which is readable beyond ASCII; lone surrogates, which no file can hold, as escapes.

    ``number`` spells the numbers, by their path; without it they are JSON too.
    """
    text = _dumped(value, (), None if indent is None else " " * indent, number or (lambda _, one: in_json(one)))
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def with_spelling(value: Any, path_texts: Iterable[tuple[Path, str]]) -> None:  # noqa: ANN401 - any config
    """Give the numbers of a config the texts that they were written as."""
    for path, text in path_texts:
        there = get(value, path)
        number = spelled(there, text)
        if number is not there:
            put(value, path, number)


def _dumped(value: object, path: Path, unit: str | None, number: Callable[[Path, Any], str]) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(path, value)
    if not isinstance(value, (dict, list, tuple)) or not value:
        return json.dumps(value, ensure_ascii=False, default=str)
    line, end = ("", "") if unit is None else (f"\n{unit * (len(path) + 1)}", f"\n{unit * len(path)}")
    if isinstance(value, dict):
        entries = [
            f"{json.dumps(str(name), ensure_ascii=False)}: {_dumped(inner, (*path, name), unit, number)}"
            for name, inner in value.items()
        ]
    else:
        entries = [_dumped(inner, (*path, index), unit, number) for index, inner in enumerate(value)]
    body = (", " if unit is None else ",").join(f"{line}{entry}" for entry in entries)
    return f"{{{body}{end}}}" if isinstance(value, dict) else f"[{body}{end}]"
