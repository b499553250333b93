"""Diagnostics, sent after each change to clients that wait for them, and answered to those that ask."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

from lsprotocol import types

from dsmigrate.language_server import diagnosing
from dsmigrate.patience import EndedError

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data


def opened(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """Send the diagnostics of a document that was opened."""
    publish(session, params.text_document.uri)


def changed(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """Send the diagnostics of a document that changed."""
    publish(session, params.text_document.uri)


def closed(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """Take back what was sent about a document that is no longer open."""
    session.committed.pop(params.text_document.uri, None)
    if not session.client.pulls_diagnostics and params.text_document.uri in session.published:
        session.published.discard(params.text_document.uri)
        session.send(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, {"uri": params.text_document.uri, "diagnostics": []})


def publish(session: Session, uri: str) -> None:
    """Send the diagnostics of an open document, unless the client asks for them itself.

    A document that is none of ours gets nothing, not even an empty list, unless something was sent before.
    """
    document = session.documents.get(uri)
    if document is None or session.client.pulls_diagnostics:
        return
    if document.is_long:
        session.begin(_publish_later(session, document))
        return
    _send(session, document, diagnosing.diagnostics(session, document))


async def _publish_later(session: Session, document: OpenDocument) -> None:
    """Send the diagnostics of a long document, unless it has changed by then: the change sends its own."""
    with contextlib.suppress(EndedError):
        found = await session.aside.run(document.uri, lambda: diagnosing.diagnostics(session, document))
        if session.documents.get(document.uri) is document:
            _send(session, document, found)


def _send(session: Session, document: OpenDocument, found: list[Data] | None) -> None:
    uri = document.uri
    if found is None and uri not in session.published:
        return
    if found is None:
        session.published.discard(uri)
    else:
        session.published.add(uri)
    session.send(
        types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
        {"uri": uri, "version": document.version, "diagnostics": found or []},
    )


def refresh(session: Session) -> None:
    """Have everything diagnosed anew."""
    if not session.client.pulls_diagnostics:
        for document in session.documents:
            publish(session, document.uri)
    elif session.client.can("workspace.diagnostics.refresh_support"):
        session.server.protocol.send_request(types.WORKSPACE_DIAGNOSTIC_REFRESH)


def pull(session: Session, params: types.DocumentDiagnosticParams) -> Data:
    """Answer the diagnostics of an open document, or that they are those of ``previousResultId``."""
    document = session.documents.get(params.text_document.uri)
    found = (diagnosing.diagnostics(session, document) if document is not None else None) or []
    return report(found, params.previous_result_id)


def report(found: list[Data], previous: str | None) -> Data:
    """Return a full report, or "unchanged" where the client has this very one; its id is that of the content."""
    result = hashlib.blake2b(json.dumps(found).encode(), digest_size=12).hexdigest()
    if result == previous:
        return {"kind": "unchanged", "resultId": result}
    return {"kind": "full", "resultId": result, "items": found}
