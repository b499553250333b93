"""How new text is laid out at a spot: quotes, colon, indent, one line or several."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Object, Style, layout
from dsmigrate.editing.completion.body import Body, Spelling, spelling
from dsmigrate.editing.completion.spot import Spot

_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class Page:
    """The manner of the text around a spot; ``snippets`` is whether the client knows tab stops."""

    spelling: Spelling
    snippets: bool
    inline: bool
    newline: str
    indent: str
    unit: str

    def text(self, body: Body) -> str:
        """Return the text of a value for the spot."""
        return body.text(
            snippet=self.snippets, inline=self.inline, newline=self.newline, indent=self.indent, unit=self.unit
        )


def page(spot: Spot, *, snippets: bool) -> Page:
    """Return the manner of the text at a spot."""
    document = spot.document
    text = document.text
    return Page(
        spelling=_spelling(spot),
        snippets=snippets,
        inline=_is_inline(spot),
        newline=document.newline,
        indent=_indent(spot, text),
        unit=_unit(spot),
    )


def _unit(spot: Spot) -> str:
    """Return the indent of a level; that of the cursor's line where a file has nothing yet but that line."""
    root = spot.document.root
    if isinstance(root, Object) and spot.container == root and len(root) == (spot.member is not None):
        blanks = spot.document.text[layout.line_start(spot.document.text, spot.start) : spot.start]
        if blanks and not blanks.strip(_BLANKS):
            return blanks
    return spot.document.indent


def _indent(spot: Spot, text: str) -> str:
    line = layout.line_start(text, spot.start)
    before = text[line : spot.start]
    return before + spot.lead if not before.strip(_BLANKS) else layout.line_indent(text, spot.start)


def _is_inline(spot: Spot) -> bool:
    """Tell whether what is new has to share its line: its object stands on one."""
    container = spot.container
    if container is None or (isinstance(container, Object) and not container.has_braces):
        return False
    text = spot.document.text
    if layout.has_line_end(text, container.start, container.end):
        first = container.member(0) if isinstance(container, Object) and len(container) else None
        return first is not None and first.start != spot.start and not _starts_line(text, first.start)
    whole = not text[container.end :].strip() and not text[: container.start].strip("\ufeff \t\r\n")
    others = len(container) - (spot.member is not None)
    return not (whole and others == 0)


def _starts_line(text: str, offset: int) -> bool:
    return layout.starts_line(text, offset)


def _spelling(spot: Spot) -> Spelling:
    """Return how keys are written: as the neighbours' and as the typed quote says; else as at the top of the file."""
    style, colon = Style.DOUBLE, ": "
    for container in (spot.container, spot.document.root):
        found = _model(container, spot) if isinstance(container, Object) else None
        if found is not None:
            style, colon = found
            break
    if spot.quote:
        style = Style.SINGLE if spot.quote == "'" else Style.DOUBLE
    return spelling(style, colon)


def _model(container: Object, spot: Spot) -> tuple[Style, str] | None:
    """Return style and colon of the last whole member of an object that is not the one being typed."""
    for index in range(len(container) - 1, max(-1, len(container) - 4), -1):
        member = container.member(index)
        key, node, colon = member.key, member.node, member.colon
        if key is None or node is None or colon is None or (spot.member is not None and index == spot.member.index):
            continue
        between = spot.document.text[key.end : node.start]
        return key.style, between if not between.replace(":", "", 1).strip(_BLANKS) else ": "
    return None
