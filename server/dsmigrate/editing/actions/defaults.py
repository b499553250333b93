"""Defaults as facts of a release: which of them decide something, and whether a value only repeats one."""

from __future__ import annotations

import functools

from dsmigrate.knowledge import MISSING, Key, Status, knowledge
from dsmigrate.knowledge.spans import EventKind
from dsmigrate.languages import forgotten


@functools.lru_cache(maxsize=256)
def decisive(version: str, section: str) -> tuple[Key, ...]:
    """Return the keys of a section whose default was another one in some release: leaving them out means either."""
    return tuple(
        key
        for key in knowledge(version).children(section)
        if key.status is Status.PRESENT and not key.is_section and key.alias_of is None and has_moved(key)
    )


def has_moved(key: Key) -> bool:
    """Return whether the default of a key was another one in some release."""
    return any(event.kind is EventKind.DEFAULT for event in key.history)


def repeats(value: object, key: Key) -> bool:
    """Return whether a value says what the absence of its key says."""
    default = key.default
    if default is MISSING:
        return False
    if isinstance(value, bool) or isinstance(default, bool):
        return value is default
    if isinstance(value, int | float) and isinstance(default, int | float):
        return value == default
    return type(value) is type(default) and value == default


forgotten(decisive.cache_clear)
