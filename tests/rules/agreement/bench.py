"""What faults are made with."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import Key, Knowledge, Status

from .case import Config, Planted

OTHER_VALUES: dict[str, tuple[object, ...]] = {
    "boolean": (True, False),
    "integer": (3, 0, -1, 10**12),
    "number": (0.5, -2.5, 1e9),
    "string": ("zzz", "true", "false", "1", "1e-4", "5e8", "", "$VALUE"),
    "array": ([], [1], ["zzz"]),
    "object": ({}, {"zzz": 1}),
    "null": (None,),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What a fault is made with: chance, the knowledge of the release, and the config that it changes."""

    rng: random.Random
    known: Knowledge
    config: Config

    def put(self, path: str, content: object) -> str | None:
        """Put a value at a path and return where it is; None when something in between is no section.

        ``*`` becomes a name, the one that is there if there is one, and ``[]`` the first element.
        """
        place: Any = self.config
        names = path.replace("[]", ".0").split(".")
        for index, name in enumerate(names):
            if name == "*":
                names[index] = next(iter(place), "some") if isinstance(place, dict) else name
            last = index == len(names) - 1
            inner: object = [{}] if names[index + 1 : index + 2] == ["0"] else {}
            if isinstance(place, dict):
                place[names[index]] = content if last else place.get(names[index], inner)
                place = place[names[index]]
            elif isinstance(place, list) and place and name == "0":
                place = place[0]
            else:
                return None
        return ".".join(names)

    def get(self, path: str) -> Any:
        """Return the value at a path, None when there is none."""
        place: Any = self.config
        for name in path.replace("[]", ".0").split("."):
            if isinstance(place, list):
                place = place[0] if place and name == "0" else None
            else:
                place = place.get(next(iter(place), "") if name == "*" else name) if isinstance(place, dict) else None
        return place

    def section(self, path: str) -> Config:
        """Return the section at a path, made if need be."""
        if not isinstance(self.get(path), dict):
            self.put(path, {})
        found: Config = self.get(path)
        return found

    def here(self) -> list[Key]:
        """Return every key that has a fixed place in the release."""
        return _present(self.known)

    def leaf(self) -> Key:
        """Return a key that holds a value, by chance."""
        return self.rng.choice([key for key in self.here() if not key.is_section])


@functools.cache
def every_key(known: Knowledge) -> list[Key]:
    """Return every key that any release knows."""
    return [key for path in known.every_path() if (key := known.key(path)) is not None]


@functools.cache
def _present(known: Knowledge) -> list[Key]:
    return [key for key in every_key(known) if key.status in {Status.PRESENT, Status.DEPRECATED}]


Fault = Callable[[Bench], Planted | None]
