"""Places of findings as the formats count them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dsmigrate.document import Document, Encoding, Position

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.entries import Entry

DOCS = "https://github.com/dsmigrate/dsmigrate/blob/main/docs/rules"
MESSAGES = "https://github.com/dsmigrate/dsmigrate/blob/main/docs/messages"
CONVERSIONS = "https://github.com/dsmigrate/dsmigrate/blob/main/docs/conversions"


@dataclass(frozen=True, slots=True)
class Span:
    """Start and end of a range, zero-based, in the units that were asked for."""

    start: Position
    end: Position


def span(document: Document, start: int, end: int, encoding: Encoding = Encoding.UTF16) -> Span:
    """Return the range of two offsets as lines and characters."""
    return Span(document.position(start, encoding), document.position(end, encoding))


def url(code: str) -> str:
    """Return the page of a rule, or of a code of conversions."""
    return f"{CONVERSIONS if code.startswith('CV') else DOCS}/{code}.md"


def message_url(entry: Entry) -> str:
    """Return where a message is described."""
    return f"{MESSAGES}/{entry.page}"
