"""Configs with a place marked in them, as the tests write them."""

from __future__ import annotations

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.rules import Settings


def marked(text: str, settings: Settings | None = None) -> tuple[View, int]:
    """Return the view of ``text`` without its ``|``, and where that stood."""
    offset = text.index("|")
    return View(parse(text[:offset] + text[offset + 1 :]), settings), offset


def cut(view: View, span: tuple[int, int]) -> str:
    """Return the text between two offsets."""
    return view.text[span[0] : span[1]]
