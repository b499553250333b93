"""Diagnostics of whole folders: of every config in them, from the disk where it is not open."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from dsmigrate.checking.recognise import SUFFIXES
from dsmigrate.document import DocumentError, parse_bytes
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.language_server import diagnosing
from dsmigrate.language_server.aside import LONG
from dsmigrate.language_server.documents import OpenDocument
from dsmigrate.language_server.features.diagnostics import report
from dsmigrate.language_server.features.lifecycle import can_watch
from dsmigrate.language_server.progress import working
from dsmigrate.language_server.uris import path_of, uri_of
from dsmigrate.language_server.views import asked_for
from dsmigrate.language_server.wire import Lines
from dsmigrate.patience import CancelledWorkError, EndedError, LimitError

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data


async def pull_all(session: Session, params: types.WorkspaceDiagnosticParams) -> Data:
    """Answer the diagnostics of every config in the workspace folders, from the disk where none is open.

    Between files other requests get their turn, and a cancelled request ends. Clients that take partial results get
    one after each file. What has not changed since the last time is neither looked for nor read again: some clients
    ask every two seconds.
    """
    before = {item.uri: item.value for item in params.previous_result_ids}
    token = params.partial_result_token
    answer: list[Data] = []
    seen: set[str] = set()
    async with working(session, "Checking configs", params.work_done_token) as work:
        for document in session.documents:
            found = await _of_document(session, document)
            if found is not None:
                answer.append(_placed(document.uri, document.version, report(found, before.get(document.uri))))
            seen.add(document.uri)
        files = await _files(session)
        for number, (path, uri) in enumerate(files):
            work.report(number, len(files), path.name)
            found = None if uri in seen else await _of_file(session, path, uri)
            if found is not None:
                answer.append(_placed(uri, None, report(found, before.get(uri))))
                seen.add(uri)
            if token is not None and answer:
                session.send(types.PROGRESS, {"token": token, "value": {"items": answer}})
                answer = []
            await asyncio.sleep(0)
    for uri in session.closed.keys() - seen:
        del session.closed[uri]
    gone = [_placed(uri, None, report([], None)) for uri in before if uri not in seen]
    return {"items": [*answer, *gone]}


async def _of_document(session: Session, document: OpenDocument) -> list[Data] | None:
    """Return the diagnostics of an open document; of a long one those of the text that it has in the end."""
    while document.is_long:
        try:
            return await session.aside.run(document.uri, functools.partial(diagnosing.diagnostics, session, document))
        except LimitError:
            return []
        except CancelledWorkError:
            changed = session.documents.get(document.uri)
            if changed is None:
                return None
            document = changed
    return diagnosing.diagnostics(session, document)


async def _of_file(session: Session, path: Path, uri: str) -> list[Data] | None:
    """Return the diagnostics of a file that is not open; a long one is checked beside the loop."""
    if not _is_long(path):
        return _closed_file(session, path, uri)
    try:
        return await session.aside.run("", lambda: _closed_file(session, path, uri))
    except EndedError:
        return []


def _is_long(path: Path) -> bool:
    try:
        return path.stat().st_size > LONG
    except OSError:
        return False


async def _files(session: Session) -> list[tuple[Path, str]]:
    """Return the configs of the workspace folders; they are looked for anew unless the client tells of changes."""
    if session.files is None or not can_watch(session):
        session.files = await asyncio.get_running_loop().run_in_executor(None, lambda: list(_found(session)))
    return session.files


def _found(session: Session) -> Iterator[tuple[Path, str]]:
    """Yield the configs of the workspace folders as ``dsmigrate check`` finds them."""
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
            yield candidate.path.absolute(), uri_of(candidate.path.absolute())


def _closed_file(session: Session, path: Path, uri: str) -> list[Data] | None:
    """Return the diagnostics of a file as it lies on the disk; None for one that cannot be read."""
    try:
        stat = path.stat()
        stamp = session.generation, stat.st_mtime_ns, stat.st_size
        known = session.closed.get(uri)
        if known is not None and known[0] == stamp:
            return known[1]
        data = read(path)
        if path.suffix.lower() not in SUFFIXES:
            session.closed[uri] = stamp, _in_another_form(session, path, uri, data)
            return session.closed[uri][1]
        tree = parse_bytes(data)
    except (OSError, SourceError, DocumentError):
        return None
    item = types.TextDocumentItem(uri=uri, language_id="json", version=0, text=tree.text)
    document = OpenDocument(item, session.documents.encoding)
    document.is_config = True
    found = diagnosing.diagnostics(session, document) or []
    session.closed[uri] = stamp, found
    return found


def _in_another_form(session: Session, path: Path, uri: str, data: bytes) -> list[Data]:
    """Return the diagnostics of a file whose suffix is not JSON's, as ``dsmigrate check`` reads it."""
    from dsmigrate.checking.job import check_bytes  # noqa: PLC0415 - what few files need

    settings = session.settings_in(path.parent, uri)
    checked = check_bytes(str(path), data, path.parent, asked_for(settings, path.parent))
    if checked.document is None:
        return []
    lines = Lines(checked.document.lines, session.documents.encoding)
    return diagnosing.of_findings(session, uri, lines, checked.findings)


def _placed(uri: str, version: int | None, of: Data) -> Data:
    return {**of, "uri": uri, "version": version}
