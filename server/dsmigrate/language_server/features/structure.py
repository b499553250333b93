"""The shape of a config: outline, folding, growing selections, links, and keys that depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from dsmigrate.editing import folding, links, outline, relations, selection
from dsmigrate.editing.outline import Symbol, SymbolKind
from dsmigrate.language_server.asking import Asked, asked_at, asked_of
from dsmigrate.language_server.uris import uri_of

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data, Lines

MOST = 5000
"""Symbols, folds or links of one document: the answer for megabytes would be hundreds of them."""
_KINDS = {
    SymbolKind.OBJECT: types.SymbolKind.Object,
    SymbolKind.ARRAY: types.SymbolKind.Array,
    SymbolKind.STRING: types.SymbolKind.String,
    SymbolKind.NUMBER: types.SymbolKind.Number,
    SymbolKind.BOOLEAN: types.SymbolKind.Boolean,
    SymbolKind.NULL: types.SymbolKind.Null,
}


def document_symbols(session: Session, params: types.DocumentSymbolParams) -> list[Data] | None:
    """Answer the outline: nested where the client can show that, else a list of keys with their containers."""
    asked = asked_of(session, params.text_document.uri)
    if asked is None:
        return None
    found = outline.symbols(asked.view)
    if session.client.can("text_document.document_symbol.hierarchical_document_symbol_support"):
        room = iter(range(MOST))
        return [_nested(asked.lines, symbol, room) for symbol, _ in zip(found, room, strict=False)]
    return list(islice(_flat(asked, found, ""), MOST))


def _nested(lines: Lines, symbol: Symbol, room: Iterator[int]) -> Data:
    """Return a symbol with those in it, as long as there is room."""
    made: Data = {
        "name": symbol.name,
        "detail": symbol.detail,
        "kind": _KINDS[symbol.kind].value,
        "range": lines.range(symbol.start, symbol.end),
        "selectionRange": lines.range(symbol.key_start, symbol.key_end),
    }
    if symbol.deprecated:
        made["tags"] = [types.SymbolTag.Deprecated.value]
    if symbol.children:
        made["children"] = [_nested(lines, child, room) for child, _ in zip(symbol.children, room, strict=False)]
    return made


def _flat(asked: Asked, found: Iterable[Symbol], container: str) -> Iterable[Data]:
    for symbol in found:
        yield {
            "name": symbol.name,
            "kind": _KINDS[symbol.kind].value,
            "location": {"uri": asked.document.uri, "range": asked.lines.range(symbol.start, symbol.end)},
            "containerName": container,
        }
        yield from _flat(asked, symbol.children, f"{container}.{symbol.name}" if container else symbol.name)


def folding_ranges(session: Session, params: types.FoldingRangeParams) -> list[Data] | None:
    """Answer what can be folded, at most as much as the client takes."""
    asked = asked_of(session, params.text_document.uri)
    if asked is None:
        return None
    most = session.client.can("text_document.folding_range.range_limit")
    index = asked.lines.index
    made: list[Data] = []
    for fold in folding.folds(asked.view)[: min(most, MOST) if isinstance(most, int) else MOST]:
        first, last = index.line_of(fold.start), index.line_of(fold.end)
        if fold.is_comment:
            made.append({"startLine": first, "endLine": last, "kind": types.FoldingRangeKind.Comment.value})
        elif last - 1 > first:
            made.append({"startLine": first, "endLine": last - 1})  # the closing bracket stays in view
    return made


def selection_ranges(session: Session, params: types.SelectionRangeParams) -> list[Data] | None:
    """Answer, for each position, the ranges around it as a chain from the smallest to the whole file."""
    made: list[Data] = []
    for position in params.positions:
        found = asked_at(session, params.text_document.uri, position)
        if found is None:
            return None
        asked, offset = found
        chain: Data | None = None
        for start, end in reversed(selection.selections(asked.view, offset)):
            chain = {"range": asked.lines.range(start, end), **({"parent": chain} if chain is not None else {})}
        assert chain is not None  # noqa: S101 - there is always one
        made.append(chain)
    return made


def document_links(session: Session, params: types.DocumentLinkParams) -> list[Data] | None:
    """Answer the links of a config."""
    asked = asked_of(session, params.text_document.uri)
    if asked is None:
        return None
    tooltips = bool(session.client.can("text_document.document_link.tooltip_support"))
    return [
        {
            "range": asked.lines.range(link.start, link.end),
            "target": uri_of(link.target) if isinstance(link.target, Path) else link.target,
            **({"tooltip": link.tooltip} if tooltips else {}),
        }
        for link in links.links(asked.view)[:MOST]
    ]


def definition(session: Session, params: types.DefinitionParams) -> list[Data] | None:
    """Answer the keys that decide about the one at a position."""
    found = asked_at(session, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, offset = found
    return [_location(asked, span) for span in relations.depends_on(asked.view, offset)]


def references(session: Session, params: types.ReferenceParams) -> list[Data] | None:
    """Answer the keys that depend on the one at a position."""
    found = asked_at(session, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, offset = found
    spans = relations.references(asked.view, offset, itself=params.context.include_declaration)
    return [_location(asked, span) for span in spans]


def highlights(session: Session, params: types.DocumentHighlightParams) -> list[Data] | None:
    """Answer the key at a position and those that belong together with it."""
    found = asked_at(session, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, offset = found
    return [{"range": asked.lines.range(*span)} for span in relations.highlights(asked.view, offset)]


def _location(asked: Asked, span: tuple[int, int]) -> Data:
    return {"uri": asked.document.uri, "range": asked.lines.range(*span)}
