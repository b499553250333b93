"""What the real loaders make of a text: DeepSpeed's own call of hjson, and Python's json held to RFC 8259."""

from __future__ import annotations

import json
from typing import Any

import hjson

Outcome = tuple[bool, Any]
"""Whether the loader accepts the text, and its value or the exception."""


class _RefusedError(ValueError):
    pass


def as_read(text: str) -> str:
    """Return what ``open(path, "r")``, with which DeepSpeed reads, makes of line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def deepspeed(text: str, *, duplicates: bool = False) -> Outcome:
    """Load ``text`` as ``DeepSpeedConfig`` does; ``duplicates`` lets equal keys pass, the last one winning."""

    def pairs_hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        loaded = dict(pairs)
        if len(loaded) != len(pairs) and not duplicates:  # deepspeed/runtime/config_utils.py
            raise ValueError("Duplicate keys in DeepSpeed config")
        return loaded

    try:
        return True, hjson.loads(as_read(text), object_pairs_hook=pairs_hook)
    except (ValueError, IndexError, OverflowError, RecursionError) as error:
        return False, error


def is_json(text: str) -> bool:
    """Tell whether ``text`` is JSON, NaN and infinities excluded as in the standard."""

    def constant(name: str) -> None:
        raise _RefusedError(name)

    try:
        json.loads(as_read(text), parse_constant=constant)
    except (ValueError, RecursionError):
        return False
    return True
