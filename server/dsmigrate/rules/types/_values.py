"""JSON values beside what a key takes: types, closed lists, ranges, and how messages show them."""

from __future__ import annotations

import functools
import json
import math

from dsmigrate.document.edits import Spelling
from dsmigrate.knowledge import Key
from dsmigrate.knowledge.near import nearest
from dsmigrate.knowledge.wording import json_text, range_text, type_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Fix
from dsmigrate.rules.text._shared import LITERALS


def kinds_of(value: object) -> set[str]:
    """Return the JSON types a value belongs to: 3 and 3.0 are an integer and a number."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return {"integer", "number"}
    names: tuple[tuple[type, str], ...] = ((float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next(({name} for kind, name in names if isinstance(value, kind)), {"null"})


def is_listed(key: Key, value: object) -> bool:
    """Return whether a value is in the closed list of a key."""
    if key.ignores_case and isinstance(value, str):
        return value.lower() in {str(item).lower() for item in key.enum}
    return any(value == item and isinstance(value, str) is isinstance(item, str) for item in key.enum)


def in_range(key: Key, value: float) -> bool:
    """Return whether a number lies in the range of a key; NaN and the infinities lie in none.

    Where a release has a limit as an inclusive and an exclusive one, the inclusive one is its own.
    """
    if not -math.inf < value < math.inf:  # math.isfinite raises for integers beyond the range of a float
        return False
    above = key.exclusive_minimum is None or key.minimum is not None or value > key.exclusive_minimum
    below = key.exclusive_maximum is None or key.maximum is not None or value < key.exclusive_maximum
    least = key.minimum is None or value >= key.minimum
    most = key.maximum is None or value <= key.maximum
    return above and below and least and most


@functools.lru_cache(maxsize=1024)
def wanted_text(key: Key) -> str:
    """Return in words what a key takes: the closed list where there is one, else type and range."""
    if key.enum:
        return say("one of ") + say(", ").join(json_text(item) for item in key.enum)
    limits = range_text(key)
    return f"{type_text(key)} {limits}".strip()


def shown_value(value: object) -> str:
    """Return a value as messages show it."""
    text = json_text(value)
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}…`"


def plain_value(key: Key, value: object) -> object:
    """Return what a string plainly stands for in the type of a key, spelled as it is; the string itself for nothing."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    kinds = set(key.type)
    if "boolean" in kinds and text.lower() in LITERALS and text.lower() != "none":
        return LITERALS[text.lower()]
    if kinds & {"integer", "number"}:
        try:
            read = json.loads(text)
        except ValueError:
            return value
        exact = isinstance(read, int | float) and not isinstance(read, bool)
        if exact and kinds_of(read) & kinds and in_range(key, read):
            return Spelling(text)
    return value


def mend(context: Context, entry: Entry, key: Key, value: object, *, safe: bool) -> Fix | None:
    """Return the fix that writes what a string stands for, or the value of the closed list that it is near to."""
    better = plain_value(key, value)
    if better is value or better == value:
        better = near_value(key, value)
        if better is None:
            return None
        folded = isinstance(value, str) and value.strip().lower() == str(better).lower()
        safe = safe and folded
    text = better.text if isinstance(better, Spelling) else json_text(better)
    return context.replace(entry, better, say("Write `{text}`", text=text), safe=safe)


def near_value(key: Key, value: object) -> str | None:
    """Return the value of the closed list that a string is a slip of."""
    if not isinstance(value, str):
        return None
    names = [item for item in key.enum if isinstance(item, str)]
    found = nearest(value.strip(), names, limit=1)
    return found[0] if found else None


def place(entry: Entry) -> str:
    """Return the path of a member as messages show it."""
    return shown(entry.path)


def is_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
