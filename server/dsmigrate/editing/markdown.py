"""Markdown of our own making, and the same as readable text for clients that cannot render it."""

from __future__ import annotations

import re

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")
_TICKS = re.compile(r"`+")
_SOFT_BREAK = re.compile(r"(?<=[^\n])\n(?![\n]|[-*] |\d+\. |\||```|#)")

_LONGEST = 60


def code(text: object, *, longest: int = _LONGEST) -> str:
    """Return any text as a code span on one line: cut, and safe against its own backticks and lone surrogates."""
    shown = _BLANKS.sub(" ", safe(str(text)[: longest + 1]))
    if len(shown) > longest:
        shown = f"{shown[: longest - 1]}…"
    if not shown.strip():
        return '`""`'
    fence = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def safe(text: str) -> str:
    """Return a text without lone surrogates, which no protocol message can carry."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def flow(text: str) -> str:
    """Return a text whose paragraphs are one line each, so that a client breaks them to its width; lists stay."""
    return _SOFT_BREAK.sub(" ", text.strip())


_FENCE = re.compile(r"^```\w*$")
_SPAN = re.compile(r"(?P<fence>`+)(?P<code>.+?)(?P=fence)(?!`)")
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<url>[^)\s]+)\)|<(?P<bare>https?://[^>\s]+)>")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_HEADING = re.compile(r"^#{1,6} ")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")


def plain(markdown: str) -> str:
    """Return Markdown as text: no marks of emphasis, code or headings; a link is its text with the address behind it.

    It knows what our texts use and leaves everything else as it is. What stands in code is not touched.
    """
    lines = []
    fenced = False
    for line in markdown.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        else:
            lines.append(line if fenced else _line(_HEADING.sub("", line)))
    return "\n".join(lines)


def _line(line: str) -> str:
    line = line.replace("\0", "")  # marks the place of a code span below
    parts: list[str] = []
    codes: list[str] = []
    pos = 0
    for found in _SPAN.finditer(line):
        parts += (line[pos : found.start()], f"\0{len(codes)}\0")
        codes.append(_unpadded(found["code"]))
        pos = found.end()
    text = "".join([*parts, line[pos:]])
    text = _STRONG.sub(r"\1", _LINK.sub(_link, text))
    text = _ESCAPED.sub(r"\1", text)
    return re.sub(r"\0(\d+)\0", lambda found: codes[int(found[1])], text)


def _link(found: re.Match[str]) -> str:
    return found["bare"] or f"{found['text']} ({found['url']})"


def _unpadded(code: str) -> str:
    return code[1:-1] if len(code) > 2 and code.startswith(" ") and code.endswith(" ") else code
