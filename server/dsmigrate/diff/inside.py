"""What differs inside of two lists or objects."""

from __future__ import annotations

from typing import Any

from dsmigrate.diff.pair import shown
from dsmigrate.languages import say

_MOST = 4
_LARGE = 1000
_WORDS = {
    "iterable_item_added": "adds",
    "dictionary_item_added": "adds",
    "iterable_item_removed": "drops",
    "dictionary_item_removed": "drops",
}


def inside(old: object, new: object) -> str:
    """Return the differences of two lists, or two objects, in words: "adds `"c"`, drops `"a"`"; "" for anything else.

    deepdiff finds them, and compares many with many: what is large is only said to differ.
    """
    if not (isinstance(old, list) and isinstance(new, list)) and not (isinstance(old, dict) and isinstance(new, dict)):
        return ""
    if _is_large(old) or _is_large(new):
        return ""
    from deepdiff import DeepDiff  # noqa: PLC0415 - takes as long to import as all the rest, and few pairs need it

    found: Any = DeepDiff(old, new, view="tree", ignore_numeric_type_changes=True, threshold_to_diff_deeper=0)
    # deepdiff keeps what it finds of a kind in sets, whose order is another one in each process.
    levels = [(kind, level) for kind, those in found.items() for level in those]
    said = [_said(kind, level) for kind, level in sorted(levels, key=lambda one: _order(*one))]
    more = [say("{number} more", number=len(said) - _MOST)] if len(said) > _MOST else []
    return ", ".join([*said[:_MOST], *more])


def _is_large(value: object) -> bool:
    """Return whether there are more than ``_LARGE`` values in a list or an object, at any depth."""
    waiting, count = [value], 0
    while waiting and count <= _LARGE:
        inner = waiting.pop()
        count += 1
        if isinstance(inner, (list, dict)):
            waiting += list(inner.values() if isinstance(inner, dict) else inner)[: _LARGE + 1]
    return count > _LARGE


def _order(kind: str, level: Any) -> tuple[list[tuple[bool, int, str]], str]:  # noqa: ANN401 - deepdiff's own
    """Order by place, numbers before names."""
    parts = level.path(output_format="list")
    return [(isinstance(one, str), one if isinstance(one, int) else 0, str(one)) for one in parts], kind


def _said(kind: str, level: Any) -> str:  # noqa: ANN401 - deepdiff's own
    word = _WORDS.get(kind)
    place = ".".join(map(str, level.path(output_format="list")))
    if word is None:
        where = "" if place.isdecimal() else f"`{place}` "
        return f"{where}{shown(level.t1)} → {shown(level.t2)}"
    value = shown(level.t2 if word == "adds" else level.t1)
    return f"{word} `{place}` {value}" if kind.startswith("dictionary") else f"{word} {value}"
