"""The floor: a pygls server that does next to nothing, started by ``server_latency``."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("bare", "1")


@server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
def diagnostic(_params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
    """Answer that there is nothing."""
    return types.RelatedFullDocumentDiagnosticReport(items=[])


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(_params: types.HoverParams) -> types.Hover:
    """Answer a letter."""
    return types.Hover(contents="x")


@server.feature(types.TEXT_DOCUMENT_COMPLETION)
def completion(_params: types.CompletionParams) -> types.CompletionList:
    """Answer one item."""
    return types.CompletionList(is_incomplete=False, items=[types.CompletionItem(label="x")])


if __name__ == "__main__":
    server.start_io()
