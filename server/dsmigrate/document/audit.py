"""No edit leaves this package that does not do what was asked for: the result is read again and compared."""

from __future__ import annotations

from collections.abc import Sequence

from dsmigrate.document.document import Document, parse
from dsmigrate.document.errors import EditError
from dsmigrate.document.paths import Path
from dsmigrate.document.problems import Code
from dsmigrate.document.textedits import TextEdit, apply, merged


def check_editable(document: Document) -> None:
    """Raise EditError unless DeepSpeed reads the text, duplicate keys aside: what broken text means is a guess."""
    for item in document.problems:
        if item.is_fatal and item.code is not Code.DUPLICATE_KEY:
            line = document.position(item.start).line + 1
            raise EditError(f"the text cannot be edited before it is complete; line {line}: {item.message}")


def checked(document: Document, wanted: Sequence[TextEdit], expected: object) -> tuple[TextEdit, ...]:
    """Return the edits, touching ones as one, if the edited text means ``expected`` and is as good JSON as before.

    Raises EditError otherwise.
    """
    edits = merged(document.text, wanted)
    result = parse(apply(document.text, edits))
    before = len(document.duplicates)
    readable = all(item.code is Code.DUPLICATE_KEY for item in result.problems if item.is_fatal)
    if not readable or len(result.duplicates) > before or result.value() != expected:
        raise EditError("the text around does not allow this edit without changing what else it means")
    if document.is_strict_json and not result.is_strict_json:
        raise EditError("the edit would make the text something else than strict JSON")
    return edits


def with_value(root: object, path: Path, value: object) -> object:
    """Return ``root`` with the value at ``path``, which has to be there or be a new key, set in place."""
    if not path:
        return value
    node: object = root
    for part in path[:-1]:
        if isinstance(node, dict | list):
            node = node[part]  # type: ignore[index]
    if isinstance(node, dict | list):
        node[path[-1]] = value  # type: ignore[index]
    return root
