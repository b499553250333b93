"""Hovers of a text with a mark at the cursor."""

from __future__ import annotations

from dsmigrate.editing.hover import Hover, hover_at
from dsmigrate.rules import Settings
from tests.editing.marked import marked


def hover(text: str, settings: Settings | None = None) -> Hover:
    """The hover at the mark."""
    found = hover_at(*marked(text, settings))
    assert found is not None
    return found


def paragraphs(text: str, settings: Settings | None = None) -> list[str]:
    return hover(text, settings).markdown.split("\n\n")
