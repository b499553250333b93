"""No edit leaves this package that does not do what was asked for: the result is read again and compared."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from dsmigrate.document.document import Document, parse
from dsmigrate.document.errors import EditError
from dsmigrate.document.paths import Path
from dsmigrate.document.problems import MAX_DEPTH, Code
from dsmigrate.document.textedits import TextEdit, apply, merged
from dsmigrate.languages import say


def check_editable(document: Document) -> None:
    """Raise EditError unless DeepSpeed reads the text, duplicate keys aside: what broken text means is a guess."""
    item = document.obstacle
    if item is not None:
        line = document.position(item.start).line + 1
        raise EditError(
            say(
                "the text cannot be edited before it is complete; line {line}: {message}",
                line=line,
                message=item.message,
            )
        )


def checked(document: Document, wanted: Sequence[TextEdit], expected: object) -> tuple[TextEdit, ...]:
    """Return the edits, touching ones as one, if the edited text means ``expected`` and is as good JSON as before.

    Raises EditError otherwise.
    """
    edits = merged(document.text, wanted)
    text = apply(document.text, edits)
    if _is_proven(document, text, edits, expected):
        return edits
    result = parse(text)
    before = len(document.duplicates)
    readable = all(item.code is Code.DUPLICATE_KEY for item in result.problems if item.is_fatal)
    if not readable or len(result.duplicates) > before or result.value() != expected:
        raise EditError(say("the text around does not allow this edit without changing what else it means"))
    if document.is_strict_json and not result.is_strict_json:
        raise EditError(say("the edit would make the text something else than strict JSON"))
    return edits


def _is_proven(document: Document, text: str, edits: Sequence[TextEdit], expected: object) -> bool:
    """Return whether Python's ``json`` shows that ``text`` is what was asked for; False leaves it open.

    It reads ten times as fast as we do. What it takes and hjson does not: equal keys, numbers beyond a float, depth.
    """
    if document.problems or _depth(document, edits) >= MAX_DEPTH:
        return False
    try:
        read = json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return False
    return bool(read == expected)


def _depth(document: Document, edits: Sequence[TextEdit]) -> int:
    """Return a number of levels that the edited text cannot exceed."""
    return document.tree.top.height + sum(edit.text.count("{") + edit.text.count("[") for edit in edits)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key occurs twice")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def with_value(root: object, path: Path, value: object) -> object:
    """Return ``root`` with the value at ``path``, which has to be there or be a new key; what differs is copied."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(root, dict):
        return {**root, part: with_value(root.get(part), rest, value)}
    if isinstance(root, list) and isinstance(part, int):
        return [*root[:part], with_value(root[part], rest, value), *root[part + 1 :]]
    return root


def value_at(root: object, path: Path) -> object:
    """Return the value at ``path``, None where there is none."""
    for part in path:
        if isinstance(root, dict):
            root = root.get(part)
        elif isinstance(root, list) and isinstance(part, int) and part < len(root):
            root = root[part]
        else:
            return None
    return root
