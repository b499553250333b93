"""Diagnostics, sent after each change to clients that wait for them, and answered to those that ask."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from dsmigrate.document import DocumentError, parse_bytes
from dsmigrate.language_server import diagnosing
from dsmigrate.language_server.documents import OpenDocument
from dsmigrate.language_server.uris import path_of, uri_of

if TYPE_CHECKING:
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
    found = diagnosing.diagnostics(session, document)
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
    return _report(found, params.previous_result_id)


async def pull_all(session: Session, params: types.WorkspaceDiagnosticParams) -> Data:
    """Answer the diagnostics of every config in the workspace folders, from the disk where none is open.

    Between files other requests get their turn, and a cancelled request ends. Clients that take partial results get
    one after each file.
    """
    before = {item.uri: item.value for item in params.previous_result_ids}
    token = params.partial_result_token
    answer: list[Data] = []
    seen: set[str] = set()
    for document in session.documents:
        found = diagnosing.diagnostics(session, document)
        if found is not None:
            answer.append(_of_workspace(document.uri, document.version, _report(found, before.get(document.uri))))
        seen.add(document.uri)
    for path, uri in await asyncio.get_running_loop().run_in_executor(None, lambda: list(_files(session, seen))):
        report = _closed_file(session, path, uri, before.get(uri))
        if report is not None:
            answer.append(_of_workspace(uri, None, report))
        seen.add(uri)
        if token is not None and answer:
            session.send(types.PROGRESS, {"token": token, "value": {"items": answer}})
            answer = []
        await asyncio.sleep(0)
    gone = [_of_workspace(uri, None, _report([], None)) for uri in before if uri not in seen]
    return {"items": [*answer, *gone]}


def _files(session: Session, open_ones: set[str]) -> Iterator[tuple[Path, str]]:
    """Yield the configs of the workspace folders that are not open, as ``dsmigrate check`` finds them."""
    from dsmigrate.checking.find import NothingThereError, find  # noqa: PLC0415

    for folder_uri in list(session.client.folders):
        folder = path_of(folder_uri)
        settings = session.settings_in(folder, folder_uri)
        if folder is None or not settings.enable or not settings.workspace_diagnostics:
            continue
        try:
            found = find([str(folder)], lambda place: session.settings_in(place, folder_uri).check)  # noqa: B023 - used here
        except (NothingThereError, OSError):
            continue
        for candidate in found:
            uri = uri_of(candidate.path.absolute())
            if uri not in open_ones:
                yield candidate.path.absolute(), uri


def _closed_file(session: Session, path: Path, uri: str, previous: str | None) -> Data | None:
    try:
        tree = parse_bytes(path.read_bytes())
    except (OSError, DocumentError):
        return None
    item = types.TextDocumentItem(uri=uri, language_id="json", version=0, text=tree.text)
    document = OpenDocument(item, session.documents.encoding)
    document.is_config = True
    return _report(diagnosing.diagnostics(session, document) or [], previous)


def _of_workspace(uri: str, version: int | None, report: Data) -> Data:
    return {**report, "uri": uri, "version": version}


def _report(found: list[Data], previous: str | None) -> Data:
    """Return a full report, or "unchanged" where the client has this very one; its id is that of the content."""
    result = hashlib.blake2b(json.dumps(found).encode(), digest_size=12).hexdigest()
    if result == previous:
        return {"kind": "unchanged", "resultId": result}
    return {"kind": "full", "resultId": result, "items": found}
