"""Strings in quotes and ''' strings, read as hjson 3.1.0 reads them (``hjson/decoder.py``), and further when broken."""

from __future__ import annotations

import re

from dsmigrate.document.problems import Code
from dsmigrate.document.shapes import Note, ScalarShape, Style

_PLAIN = {
    '"': re.compile(r'"([^"\\\x00-\x1f]*)"'),
    "'": re.compile(r"'([^'\\\x00-\x1f]*)'"),
}
_CHUNK = re.compile(r"[^\"'\\\x00-\x1f]*")
_JSON_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_STYLES = {'"': Style.DOUBLE, "'": Style.SINGLE}
_LINE_END = re.compile(r"\r\n|\r|\n")


def quoted(text: str, start: int) -> tuple[ScalarShape, int, list[Note]]:
    """Read the string whose quote stands at ``start``; return it, the offset behind it, and its problems.

    A string without a closing quote ends with its line.
    """
    quote = text[start]
    found = _PLAIN[quote].match(text, start)
    if found:
        value, end, notes = found[1], found.end(), list[Note]()
    else:
        value, end, notes = _with_escapes(text, start)
    if quote == "'":
        notes.append((Code.SINGLE_QUOTES, start, end))
    return ScalarShape(value, end - start, _STYLES[quote]), end, notes


def multiline(text: str, start: int, indent: int | None) -> tuple[ScalarShape, int, list[Note]]:
    """Read the string that the ''' at ``start`` opens, as ``quoted`` does; one that is not ended takes all the text.

    ``indent`` is the ``Frames.column`` of the ''', which hjson takes off the lines of the string. DeepSpeed opens the
    file in text mode, so every line end counts as a line feed.
    """
    found = text.find("'''", start + 3)  # the first three in a row end it, whatever comes behind
    close = None if found < 0 else found
    end = len(text) if close is None else close + 3
    notes: list[Note] = [(Code.MULTILINE_STRING, start, end)]
    if indent is None:
        notes.append((Code.MULTILINE_ON_ONE_LINE, start, end))
    if close is None:
        empty = not text[start + 3 :].strip(" \t\r")
        notes.append((Code.UNTERMINATED_MULTILINE if empty else Code.UNTERMINATED_STRING, start, end))
    value = _dedented(text[start + 3 : close], indent or 0)
    return ScalarShape(value, end - start, Style.MULTILINE), end, notes


def _with_escapes(text: str, start: int) -> tuple[str, int, list[Note]]:
    quote, pos = text[start], start + 1
    parts: list[str] = []
    notes: list[Note] = []
    while True:
        chunk = _CHUNK.match(text, pos)
        if chunk:
            parts.append(chunk[0])
            pos = chunk.end()
        char = text[pos : pos + 1]
        if char == quote:
            return "".join(parts), pos + 1, notes
        if char in "\r\n":  # the empty string, at the end of the text, is in there too
            notes.append((Code.UNTERMINATED_STRING, start, pos))
            return "".join(parts), pos, notes
        if char == "\\":
            char, width = _escape(text, pos, notes)
        else:
            width = 1
            if char not in "\"'":
                notes.append((Code.CONTROL_CHARACTER, pos, pos + 1))
        parts.append(char)
        pos += width


def _escape(text: str, pos: int, notes: list[Note]) -> tuple[str, int]:
    """Return what the backslash at ``pos`` stands for, and the code points that says it."""
    letter = text[pos + 1 : pos + 2]
    if letter == "u":
        return _unicode_escape(text, pos, notes)
    char = _ESCAPES.get(letter)
    if char is None:
        notes.append((Code.BAD_ESCAPE, pos, pos + 1 + (letter not in "\r\n")))
        return "\\", 1
    if letter == "'":
        notes.append((Code.FOREIGN_ESCAPE, pos, pos + 2))
    return char, 2


def _unicode_escape(text: str, pos: int, notes: list[Note]) -> tuple[str, int]:
    number, width = _hexadecimal(text, pos + 2)
    if number is None or number < 0:
        end = _LINE_END.split(text[pos : pos + 6], maxsplit=1)[0]
        notes.append((Code.BAD_ESCAPE if number is None else Code.NEGATIVE_ESCAPE, pos, pos + len(end)))
        return "\\u", 2
    whole = 2 + width
    if 0xD800 <= number < 0xDC00 and text[pos + whole : pos + whole + 2] == "\\u":
        low, low_width = _hexadecimal(text, pos + whole + 2)
        if low is not None and 0xDC00 <= low < 0xE000:
            number = 0x10000 + ((number - 0xD800) << 10 | low - 0xDC00)
            _check_escape(text, pos + whole, low_width, notes)
            _check_escape(text, pos, width, notes)
            return chr(number), whole + 2 + low_width
    _check_escape(text, pos, width, notes)
    return chr(number), whole


def _check_escape(text: str, pos: int, width: int, notes: list[Note]) -> None:
    if not _JSON_HEX.fullmatch(text, pos + 2, pos + 2 + width):
        notes.append((Code.FOREIGN_ESCAPE, pos, pos + 2 + width))


def _hexadecimal(text: str, pos: int) -> tuple[int | None, int]:
    """Return the number of four digits and its width; hjson takes all that ``int(digits, 16)`` takes, " 1_f" included.

    The width exceeds 4 where a line end of two characters, one as DeepSpeed reads it, is among them.
    """
    digits = text[pos : pos + 4]
    width = len(digits)
    if "\r" in digits:
        window = text[pos : pos + 9]
        digits = _LINE_END.sub("\n", window)[:4]
        width = next(size for size in range(len(window) + 1) if len(_LINE_END.sub("\n", window[:size])) >= len(digits))
        width += window[width - 1 : width + 1] == "\r\n"
    if len(digits) != 4 or digits[1] in "xX":
        return None, width
    try:
        return int(digits, 16), width
    except ValueError:
        return None, width


def _dedented(body: str, indent: int) -> str:
    body = _LINE_END.sub("\n", body).lstrip(" \t")
    lines = body.split("\n")
    if len(lines) > 1 and lines[0] == "":
        del lines[0]
        first = 0
    else:
        first = 1
    for number in range(first, len(lines)):
        line = lines[number]
        blanks = len(line) - len(line.lstrip(" \t"))
        lines[number] = line[min(blanks, indent) :]
    return "\n".join(lines).removesuffix("\n")
