"""Prose in code that nobody translates: strings of several words that are neither documentation nor said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dsmigrate.facts.sentences import ENGLISH_ONLY

_PROSE = re.compile(r"[a-z]+,? [a-z]+")
_CODE = re.compile(r"from \w+ import |\w+ = ")
_SAYING = frozenset({"say", "mark"})


def unsaid(source: str) -> Iterator[str]:
    """Yield each string of a module that reads like a sentence, and that ``say`` and ``mark`` do not get."""
    tree = ast.parse(source)
    passed = {id(node) for call in ast.walk(tree) for one in _said(call) for node in ast.walk(one)}
    passed |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(piece.value) for piece in node.values if isinstance(piece, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            text = node.value
        else:
            continue
        if id(node) not in passed and _PROSE.search(text) and not _CODE.match(text):
            yield text


def _said(node: ast.AST) -> list[ast.expr]:
    """Return the sentence of a call of ``say`` or ``mark``, and what it fills in for English alone."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _SAYING:
        return []
    return [node.args[0], *(one.value for one in node.keywords if (one.arg or "").startswith(ENGLISH_ONLY))]
