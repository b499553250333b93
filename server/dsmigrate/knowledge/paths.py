"""Paths of keys: ``zero_optimization.offload_param.device``, with ``*`` for free names and ``[]`` for list elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SEPARATOR = "."
ANY_NAME = "*"
ANY_ELEMENT = "[]"
_DOT = "\u2024"
"""What stands for a dot inside one name, which separates nothing: `{"fp16.enabled": true}` is no key of fp16."""


def spelled(path: str | Sequence[str | int]) -> str:
    """Return names and list indexes as dotted text: ``("layer_specs", 0, "shape")`` is ``layer_specs[].shape``."""
    if isinstance(path, str):
        return path
    text = ""
    for part in path:
        if isinstance(part, int):
            text += ANY_ELEMENT
        else:
            name = part.replace(SEPARATOR, _DOT) if SEPARATOR in part else part
            text += f"{SEPARATOR}{name}" if text else name
    return text


def parent(path: str) -> str:
    """Return the path of the object that holds ``path``; "" for a top-level key."""
    return path.rpartition(SEPARATOR)[0]


def name(path: str) -> str:
    """Return the last name of a path."""
    return path.rpartition(SEPARATOR)[2]


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths of the objects around ``path``, the nearest first, without the root."""
    while path := parent(path):
        yield path


def candidates(path: str) -> Iterator[str]:
    """Yield ``path`` and the patterns it may be an instance of: one name at a time replaced by ``*``."""
    yield path
    names = path.split(SEPARATOR)
    for index in range(1, len(names)):
        element = ANY_ELEMENT if names[index].endswith(ANY_ELEMENT) else ""
        yield SEPARATOR.join([*names[:index], ANY_NAME + element, *names[index + 1 :]])
