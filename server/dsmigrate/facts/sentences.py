"""The sentences of the package that people read: what ``say``, ``mark`` and ``told`` are called with.

The messages and reasons of decisions are plain strings: in the codemod's idioms every string that reads like a
sentence is one.
"""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path

_CALLS = frozenset({"say", "mark", "told"})
_IDIOMS = ("codemod/idioms/", "codemod/shared.py", "codemod/settle.py", "codemod/analysis/site.py")
_PROSE = re.compile(r"(?<![\w.(])[A-Za-z][A-Za-z']+[,:;]? [a-z]+\b(?![.(=])|^[\w.()]+ (?:removed|stays|goes)$")
_CODE = re.compile(r"^[^\w ,;.-]| = |==|^ ?(?:not|is|assert|and|or|raise) |:$")
_FROM = "dsmigrate.languages"
ENGLISH_ONLY = "en_"
"""How names begin that a sentence of another language leaves out."""


@functools.lru_cache(maxsize=1)
def sentences(package: Path) -> Mapping[str, str]:
    """Return each sentence of the modules below ``package``, with the first module that says it (``rules/batch``)."""
    found: dict[str, str] = {}
    for path in sorted(package.rglob("*.py")):
        name, source = path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
        for sentence in (*of_module(source), *(prose(source) if name.startswith(_IDIOMS) else ())):
            found.setdefault(sentence, name.removesuffix(".py"))
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


def prose(source: str) -> Iterator[str]:
    """Yield the strings of a module that read like sentences: no documentation, nothing that is filled in."""
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if called == "Idea" or is_text or isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and reads_like_prose(node.value):
            yield node.value
        inner = list(ast.iter_child_nodes(node))
        pending += [one for one in inner if not (called in _CALLS and one is node.args[0])]  # type: ignore[attr-defined]


def reads_like_prose(text: str) -> bool:
    """Whether a text is a sentence, and not code."""
    return _PROSE.search(text) is not None and _CODE.search(text) is None


def names(sentence: str) -> set[str]:
    """Return the names in braces; empty for a sentence that is not filled in.

    Raises ValueError when the braces do not match.
    """
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}
