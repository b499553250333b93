"""The sentences of the package that people read: what ``say`` and ``mark`` are called with."""

from __future__ import annotations

import ast
import functools
import string
from collections.abc import Iterator, Mapping
from pathlib import Path

_CALLS = frozenset({"say", "mark"})
_FROM = "dsmigrate.languages"
ENGLISH_ONLY = "en_"
"""How names begin that a sentence of another language leaves out."""


@functools.lru_cache(maxsize=1)
def sentences(package: Path) -> Mapping[str, str]:
    """Return each sentence of the modules below ``package``, with the first module that says it (``rules/batch``)."""
    found: dict[str, str] = {}
    for path in sorted(package.rglob("*.py")):
        for sentence in of_module(path.read_text(encoding="utf-8")):
            found.setdefault(sentence, path.relative_to(package).with_suffix("").as_posix())
    return found


def of_module(source: str) -> Iterator[str]:
    """Yield the sentences of a module in the order of its text."""
    if _FROM not in source:
        return
    tree = ast.parse(source)
    if not any(isinstance(node, ast.ImportFrom) and node.module == _FROM for node in tree.body):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _CALLS:
            continue
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def names(sentence: str) -> set[str]:
    """Return the names in braces; empty for a sentence that is not filled in.

    Raises ValueError when the braces do not match.
    """
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}
