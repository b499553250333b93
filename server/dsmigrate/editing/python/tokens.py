"""Python as tokens, also where it is half typed: the standard library's tokenizer gives up there."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\r\n]*)
  | (?P<string>[A-Za-z]{0,3}(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)
        |'(?:[^'\\\r\n]|\\.)*'?|"(?:[^"\\\r\n]|\\.)*"?))
  | (?P<number>\.?[0-9](?:[eE][+-]|[\w.])*)
  | (?P<name>[^\W\d]\w*)
  | (?P<open>[([{])
  | (?P<close>[)\]}])
  | (?P<newline>\r\n|\r|\n)
  | (?P<operator>\*\*|==|!=|<=|>=|:=|->|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_PREFIX = re.compile(r"(?i)(?:[rbuf]|br|rb|fr|rf)?(?=['\"])")


class Token(NamedTuple):
    """A token: comment, string, number, name, open, close, newline or operator; offsets are code points."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, start: int = 0) -> list[Token]:
    """Return the tokens of ``text`` from ``start`` on, without blanks; never fails."""
    found: list[Token] = []
    position = start
    while True:
        match = _TOKEN.search(text, position)
        if match is None:
            return found
        kind = match.lastgroup or "operator"
        if kind == "string" and not _PREFIX.match(match[0]):
            name = re.match(r"[A-Za-z]+", match[0])
            end = match.start() + (name.end() if name is not None else 1)
            found.append(Token("name", text[match.start() : end], match.start(), end))
            position = end
            continue
        found.append(Token(kind, match[0], match.start(), match.end()))
        position = match.end()
