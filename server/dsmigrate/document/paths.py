"""Paths: the keys and indexes that lead from the root to a value, and their dotted text.

``zero_optimization.stage``, ``optimizer.params.betas[0]``; a key that holds more than word characters and hyphens is
quoted as in JSON: ``a."b.c"``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeAlias

from dsmigrate.document.errors import PathError
from dsmigrate.languages import say

Path: TypeAlias = tuple[str | int, ...]

_PLAIN = re.compile(r"[^\W][\w-]*")
_PART = re.compile(
    r'(?P<dot>\.)?(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<plain>[^\W][\w-]*)|\[(?P<index>[0-9]+)\])', re.DOTALL
)


def render_path(path: Sequence[str | int]) -> str:
    """Return the dotted text of ``path``, "" for the root."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
            continue
        if parts:
            parts.append(".")
        parts.append(part if _PLAIN.fullmatch(part) else json.dumps(part))
    return "".join(parts)


def parse_path(text: str) -> Path:
    """Return the path whose dotted text is ``text``; raises PathError for text that is none."""
    path: list[str | int] = []
    pos = 0
    while pos < len(text):
        found = _PART.match(text, pos)
        if found is None or (found["dot"] is not None) != (pos > 0 and found["index"] is None):
            message = say(
                "{text} is no path: a key or an index belongs at character {position}", text=ascii(text), position=pos
            )
            raise PathError(message, pos)
        path.append(_part(found, text))
        pos = found.end()
    return tuple(path)


def _part(found: re.Match[str], text: str) -> str | int:
    if found["index"] is not None:
        return int(found["index"])
    if found["plain"] is not None:
        return found["plain"]
    try:
        name = json.loads(found["quoted"], strict=False)
    except ValueError as error:
        message = say("{text} is no path: {error}", text=ascii(text), error=error)
        raise PathError(message, found.start("quoted")) from None
    return str(name)
