"""What the tests say to a server: open, change, ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient

from tests.support.events import until


class Opened:
    """A document that the client has open, with a cursor that ``|`` marks in its text."""

    def __init__(self, client: LanguageClient, uri: str, text: str, language: str) -> None:
        self.client, self.uri = client, uri
        self.offset = text.find("|")
        self.text = text.replace("|", "", 1)
        self.version = 1
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(
                types.TextDocumentItem(uri=uri, language_id=language, version=1, text=self.text)
            )
        )

    @property
    def id(self) -> types.TextDocumentIdentifier:
        """Its address as requests have it."""
        return types.TextDocumentIdentifier(self.uri)

    @property
    def cursor(self) -> types.Position:
        """Where ``|`` stood."""
        return self.position(self.offset)

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset, in the units that were agreed on."""
        before = self.text[:offset]
        line = before.rpartition("\n")[2]
        codec, width = session(self.client).encoding
        return types.Position(before.count("\n"), len(line.encode(codec)) // width)

    def offset_of(self, position: types.Position) -> int:
        """Return the offset of a position."""
        codec, width = session(self.client).encoding
        lines = self.text.split("\n")
        before = lines[position.line].encode(codec)[: width * position.character].decode(codec)
        return sum(len(line) + 1 for line in lines[: position.line]) + len(before)

    def at(self, piece: str) -> types.Position:
        """Return the position one behind the start of a piece of the text."""
        return self.position(self.text.index(piece) + 1)

    def span(self, piece: str) -> types.Range:
        """Return the range of a piece of the text."""
        start = self.text.index(piece)
        return types.Range(self.position(start), self.position(start + len(piece)))

    def cut(self, span: types.Range) -> str:
        """Return the text of a range that lies on one line."""
        assert span.start.line == span.end.line
        codec, width = session(self.client).encoding
        line = self.text.split("\n")[span.start.line].encode(codec)
        return line[width * span.start.character : width * span.end.character].decode(codec)

    def change(self, old: str, new: str) -> None:
        """Replace the first ``old`` by ``new``, as an incremental change."""
        span = self.span(old)
        self.text = self.text.replace(old, new, 1)
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri),
                [types.TextDocumentContentChangePartial(text=new, range=span)],
            )
        )

    def close(self) -> None:
        """Close it."""
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.id))

    async def diagnostics(self) -> list[types.Diagnostic]:
        """Return what the server says of the text as it is: asked, where the client would ask, else as it was sent."""
        if session(self.client).pulls:
            report = await self.client.text_document_diagnostic_async(types.DocumentDiagnosticParams(self.id))
            assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
            return list(report.items)
        versions = session(self.client).versions
        await _until(lambda: self._published is not None and versions.get(self.uri) == self.version)
        return list(self._published or ())

    async def none_left(self) -> None:
        """Wait until the client has no diagnostics of it any more."""
        await _until(lambda: not self._published)

    @property
    def _published(self) -> Sequence[types.Diagnostic] | None:
        return self.client.diagnostics.get(self.uri)


async def _until(holds: Callable[[], bool]) -> None:
    """Return when something holds; the loop goes on meanwhile."""
    await asyncio.to_thread(until, holds)


class Session:
    """What a test needs to know of its session: units of positions, who asks for diagnostics, and of which version."""

    def __init__(self, name: str, capabilities: types.ClientCapabilities, agreed: types.InitializeResult) -> None:
        self.encoding = _CODECS[str(agreed.capabilities.position_encoding or "utf-16")]
        text_document = capabilities.text_document
        self.pulls = text_document is not None and text_document.diagnostic is not None
        self.is_vs_code = name == "Visual Studio Code"
        self.capabilities = capabilities
        self.versions: dict[str, int | None] = {}

    def can(self, path: str) -> Any:
        """Return a capability of the client by its path; None for one that it does not have."""
        found: Any = self.capabilities
        for name in path.split("."):
            found = getattr(found, name, None)
        return found


_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_SESSIONS: dict[int, Session] = {}


def session(client: LanguageClient) -> Session:
    """Return what is known of a client's session."""
    return _SESSIONS[id(client)]


def listen(
    client: LanguageClient, name: str, capabilities: types.ClientCapabilities, agreed: types.InitializeResult
) -> None:
    """Keep what was agreed on, and the version of each published list of diagnostics."""
    mine = _SESSIONS[id(client)] = Session(name, capabilities, agreed)
    before = client.protocol.fm.features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]

    def published(params: types.PublishDiagnosticsParams) -> None:
        before(params)
        mine.versions[params.uri] = params.version

    client.protocol.fm.features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = published


def write(client: LanguageClient, folder: Path, name: str, text: str, language: str = "json") -> Opened:
    """Open a document of a folder; nothing is written to the disk."""
    return Opened(client, (folder / name).as_uri(), text, language)
