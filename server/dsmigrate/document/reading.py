"""A whole text to its tree, with the choices hjson makes about the root."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document.frames import NOTHING, Kept
from dsmigrate.document.parser import Reader
from dsmigrate.document.problems import FATAL, Code
from dsmigrate.document.shapes import ContainerShape

_MARKS = ("\ufeff", "\xef\xbb\xbf")
"""A byte-order mark, as it is and read as Latin-1; hjson passes over both."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a text.

    ``top`` stands for the text: its one child, if any, is the root. ``divisible`` says whether a closed container can
    be read on its own and give the same shape as within the text.
    """

    top: ContainerShape
    divisible: bool


def mark_width(text: str) -> int:
    """Return the width of the byte-order mark at the start of ``text``."""
    return next((len(mark) for mark in _MARKS if text.startswith(mark)), 0)


def read(text: str, kept: Kept = NOTHING) -> Tree:
    """Read ``text``, whatever it is; for ``kept`` see ``Frames``.

    It is read as hjson reads it. Where hjson would raise, quoteless strings that look like values being typed are cut
    short, so that ``{"a": tru, "b": 2}`` has two members. A text without brackets that is no list of members may still
    be one scalar, unless hjson raises something other than HjsonDecodeError on the way.
    """
    reader = _read(text, kept, cut=False)
    if reader.fatal and not reader.crash and not _has_brackets(reader):
        scalar = _read_scalar(text)
        if scalar is not None:
            return Tree(scalar.top, divisible=False)
    divisible = _has_brackets(reader) and not reader.suspicious and not reader.multiline
    if reader.fatal and reader.suspicious:
        reader = _read(text, kept, cut=True)
    return Tree(reader.top, divisible)


def read_part(text: str, kept: Kept = NOTHING) -> ContainerShape | None:
    """Read a text that starts with a bracket as one container; for ``kept`` see ``Frames``.

    Returns None unless the container ends exactly with the text, and reads the same wherever it stands.
    """
    reader = Reader(text, cut=False, kept=kept)
    reader.container(0)
    shape = reader.top.children[0]
    whole = isinstance(shape, ContainerShape) and shape.closed and shape.width == len(text)
    if not whole or reader.escaped or reader.suspicious or reader.multiline:
        return None
    return shape if isinstance(shape, ContainerShape) else None


def _has_brackets(reader: Reader) -> bool:
    root = reader.top.children[0] if reader.top.children else None
    return isinstance(root, ContainerShape) and root.braces


def _read(text: str, kept: Kept, *, cut: bool) -> Reader:
    reader = Reader(text, cut=cut, kept=kept)
    pos = _start(reader)
    if pos == len(text):
        reader.note(Code.EMPTY_AFTER_MARK if mark_width(text) else Code.EMPTY, pos, pos)
    elif text[pos] in "{[":
        reader.container(pos)
        _finish(reader)
    else:
        reader.note(Code.NO_BRACES, pos, pos)
        reader.members(pos)
    return reader


def _read_scalar(text: str) -> Reader | None:
    """Read ``text`` as one scalar, if only one too large for the loader; None when it is anything else."""
    reader = Reader(text, cut=False)
    pos = _start(reader)
    if text[pos : pos + 1] in "{}[],:":
        return None
    reader.scalar(pos)
    _finish(reader)
    fatal = {code for code, _, _ in reader.top.notes} & FATAL
    return reader if fatal <= {Code.NUMBER_TOO_LARGE, Code.NUMBER_TOO_LONG} else None


def _start(reader: Reader) -> int:
    text = reader.text
    reader.top.width = len(text)
    mark = mark_width(text)
    if mark:
        reader.note(Code.BYTE_ORDER_MARK, 0, mark)
    return reader.skip(mark)


def _finish(reader: Reader) -> None:
    pos = reader.skip(reader.pos)
    if pos != len(reader.text):
        reader.note(Code.EXTRA_TEXT, pos, len(reader.text.rstrip(" \t\r\n")))
