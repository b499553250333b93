"""Bytes of a Python file to text and back, so that a round trip gives the same bytes."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass

from dsmigrate.languages import say

NEWLINES = ("\r\n", "\n", "\r")


class SourceError(ValueError):
    """The bytes are not the text of a Python file; ``line`` is the 1-based line where that shows."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file, newlines untouched and without the byte-order mark.

    ``encoding`` is the codec's name without a "-sig" suffix, ``bom`` says whether a UTF-8 byte-order mark came first,
    ``newline`` is the style most lines end with (a line feed where there is none), to be used for inserted lines.
    """

    text: str
    encoding: str
    bom: bool
    newline: str


def decode(source: bytes) -> SourceText:
    """Decode ``source`` as Python does: byte-order mark, then coding cookie, then UTF-8.

    Raises SourceError for binary content, an unknown or contradicted encoding, undecodable bytes, and text that would
    not give the same bytes back. An empty file is empty text.
    """
    encoding, bom = _encoding_of(source)
    body = source[len(codecs.BOM_UTF8) :] if bom else source
    nul = body.find(b"\0")
    if nul >= 0:
        raise SourceError(say("the file holds a NUL byte: it is binary, not Python source"), _line_at(body, nul))
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        bad = body[error.start]
        message = say(
            "byte 0x{bad} is not valid {encoding}; add the right coding cookie or save the file as UTF-8",
            bad=f"{bad:02x}",
            encoding=encoding,
        )
        raise SourceError(message, _line_at(body, error.start)) from None
    except (LookupError, ValueError) as error:
        message = say("cannot decode the file as {encoding}: {error}", encoding=encoding, error=error)
        raise SourceError(message) from None
    found = SourceText(text=text, encoding=encoding, bom=bom, newline=newline_of(text))
    if encode(text, found) != source:
        raise SourceError(
            say(
                "the file's {encoding} bytes do not survive decoding and encoding, so it cannot be edited",
                encoding=encoding,
            )
        )
    return found


def encode(text: str, like: SourceText) -> bytes:
    """Encode ``text`` with the encoding and byte-order mark of ``like``.

    Raises SourceError when a character has no form in that encoding.
    """
    try:
        body = text.encode(like.encoding)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        message = say(
            "character {character} has no form in {encoding}",
            character=ascii(text[error.start]),
            encoding=like.encoding,
        )
        raise SourceError(message, line) from None
    return codecs.BOM_UTF8 + body if like.bom else body


def newline_of(text: str) -> str:
    """Return the line end that most lines of ``text`` use; a line feed when there is none."""
    pairs = text.count("\r\n")
    counts = {"\r\n": pairs, "\n": text.count("\n") - pairs, "\r": text.count("\r") - pairs}
    best = max(NEWLINES, key=lambda style: counts[style])
    return best if counts[best] else "\n"


def _encoding_of(source: bytes) -> tuple[str, bool]:
    if source.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(say("the file is UTF-16, which Python does not read as source; save it as UTF-8"))
    bom = source.startswith(codecs.BOM_UTF8)
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError as error:
        if "invalid or missing encoding" in str(error.msg):
            return "utf-8", bom  # no cookie and not UTF-8: decoding says where
        raise SourceError(say("the file's encoding cannot be used: {error}", error=error.msg)) from None
    return ("utf-8" if name == "utf-8-sig" else name), bom


def _line_at(source: bytes, position: int) -> int:
    head = source[:position]
    return head.count(b"\n") + head.count(b"\r") - head.count(b"\r\n") + 1
