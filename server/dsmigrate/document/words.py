"""Keys without quotes, numbers, literals and strings without quotes, as hjson 3.1.0 tells them apart.

A value without quotes is a number or a literal when a comma, a closing bracket, a comment or the line's end follows it;
otherwise it is a string that takes the rest of its line, with whatever commas, brackets and comments are in there.
"""

from __future__ import annotations

import re

from dsmigrate.document.problems import Code
from dsmigrate.document.shapes import Note, ScalarShape, ScalarValue, Style

_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?(?=[\t ]*(?:[,}\]#\r\n]|//|/\*|\Z))")
_LITERAL = re.compile(r"(true|false|null)([^\S\r\n]*)(?=[,}\]#\r\n]|//|/\*|\Z)")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_JSON_NUMBER = re.compile(r"[-+.0-9eE]*")
_CONSTANTS = frozenset({"NaN", "Infinity", "-Infinity"})
_BARE_KEY = re.compile(r"[^ \t\n\r:{}\[\],]+")
_BLANKS_COLON = re.compile(r"([ \t\n\r]*):")
_STOPS = re.compile(r"[,}\]]")
_AFTER_COMMA = re.compile(r"[ \t]*(?:[\r\n\"'}\]#]|//|/\*|\Z|[\w.-]+[ \t]*:)")
_AFTER_CLOSING = re.compile(r"[ \t]*(?:[\r\n,}\]#]|//|/\*|\Z)")


def bare_key(text: str, start: int) -> tuple[ScalarShape, int, int | None]:
    """Read the key without quotes at ``start``; return it, the offset behind it, and its colon's or None."""
    found = _BARE_KEY.match(text, start)
    raw = found[0] if found else ""
    end = start + len(raw)
    colon = _BLANKS_COLON.match(text, end)
    name = raw.rstrip() if colon and colon[1] else raw
    return ScalarShape(name, len(raw), Style.BARE), end, None if colon is None else colon.end() - 1


def starts_key(text: str, start: int) -> bool:
    """Tell whether a key without quotes and its colon stand at ``start``, on one line."""
    found = _BARE_KEY.match(text, start)
    colon = _BLANKS_COLON.match(text, found.end()) if found else None
    return colon is not None and "\n" not in colon[1] and "\r" not in colon[1]


def word(text: str, start: int) -> tuple[ScalarShape, int, list[Note]] | None:
    """Read the number or the literal at ``start``, if one stands there, as ``strings.quoted`` does."""
    found = _NUMBER.match(text, start)
    if found:
        value, code = number(found[1], found[2] or "", found[3] or "")
        notes: list[Note] = [] if code is None else [(code, start, found.end())]
        if not _JSON_NUMBER.fullmatch(found[0]):
            notes.append((Code.FOREIGN_DIGITS, start, found.end()))
        return ScalarShape(value, len(found[0]), Style.NUMBER), found.end(), notes
    found = _LITERAL.match(text, start)
    if found:
        foreign = found[2].strip(" \t") != ""
        notes = [(Code.FOREIGN_SPACE, start, found.end())] if foreign else []
        return ScalarShape(_LITERALS[found[1]], len(found[1]), Style.LITERAL), found.end(), notes
    return None


def number(integer: str, fraction: str, exponent: str) -> tuple[ScalarValue, Code | None]:
    """Return what hjson makes of a number, and what is wrong with it.

    A float without a fraction below 1e10 becomes an integer, so 5e8 is 500000000; one beyond the range of a float, and
    an integer of thousands of digits, make the loader raise. Those are returned as infinity and as their spelling.
    """
    if not fraction and not exponent:
        try:
            return int(integer), None
        except ValueError:
            return integer, Code.NUMBER_TOO_LONG
    value = float(integer + fraction + exponent)
    if value in {float("inf"), float("-inf")}:
        return value, Code.NUMBER_TOO_LARGE
    return (int(value), None) if abs(value) < 1e10 and int(value) == value else (value, None)


def quoteless(
    text: str, start: int, end: int, *, in_object: bool, cut: bool
) -> tuple[ScalarShape, int, list[Note], bool]:
    """Read the string without quotes at ``start`` of a line that ends at ``end``.

    Returns it, the offset behind it, its problems, and whether it looks like a value that is being typed: what follows
    a comma or bracket in it looks like the text around it. With ``cut`` the string ends there, otherwise with its line.
    """
    stop = _likely_end(text, start, end, in_object=in_object)
    suspicious = stop != end
    if cut:
        end = stop
    raw = text[start:end]
    value = raw.strip()
    width = len(raw.rstrip()) or len(raw)
    code = Code.CONSTANT if value in _CONSTANTS else Code.QUOTELESS_STRING
    if cut and suspicious:
        code = Code.RUNS_ON
    return ScalarShape(value, width, Style.BARE), end, [(code, start, start + width)], suspicious


def _likely_end(text: str, start: int, end: int, *, in_object: bool) -> int:
    for stop in _STOPS.finditer(text, start, end):
        after = stop.end()
        if stop[0] == ",":
            if not in_object or _AFTER_COMMA.match(text, after):
                return stop.start()
        elif _AFTER_CLOSING.match(text, after):
            return stop.start()
    return end
