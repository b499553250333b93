"""An editor as far as a language server can tell: opens texts, and asks for diagnostics, hovers and completions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

CURSOR = "|"
TIMEOUT_SECONDS = 60.0
T = TypeVar("T")


class Editor:
    """A started language server; ``close`` ends it.

    Every question opens a document of its own, with ``CURSOR`` marking the place where the question is asked.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        language: str,
        settings: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.language = language
        self.settings = settings
        self.folder = folder
        self._numbers = itertools.count()
        self._published: dict[str, asyncio.Future[Sequence[lsp.Diagnostic]]] = {}
        self._loop = asyncio.new_event_loop()
        self._client = LanguageClient("dsmigrate-tests", "1")
        self._listen()
        self._run(self._start(command, options))

    def diagnostics(self, text: str, *, name: str | None = None) -> list[lsp.Diagnostic]:
        """Return what the server says of a document."""
        uri = self._open(text, name)
        if self._pulls:
            parameters = lsp.DocumentDiagnosticParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
            report = self._run(self._client.text_document_diagnostic_async(parameters))
            return list(getattr(report, "items", ()))
        return list(self._run(self._published[uri]))

    def hover(self, text: str) -> str:
        """Return the text of the hover at the cursor, "" for none."""
        uri, position = self._at_cursor(text)
        answer = self._run(self._client.text_document_hover_async(lsp.HoverParams(uri, position)))
        if answer is None:
            return ""
        parts = answer.contents if isinstance(answer.contents, list) else [answer.contents]
        return "\n\n".join(part if isinstance(part, str) else part.value for part in parts)

    def completions(self, text: str) -> dict[str, lsp.CompletionItem]:
        """Return what is offered at the cursor, by label."""
        uri, position = self._at_cursor(text)
        answer = self._run(self._client.text_document_completion_async(lsp.CompletionParams(uri, position)))
        items = answer.items if isinstance(answer, lsp.CompletionList) else answer or []
        return {item.label: item for item in items}

    def close(self) -> None:
        """End the server."""
        self._run(self._client.shutdown_async(None))
        self._client.exit(None)
        self._run(self._client.stop())
        self._loop.close()

    def _listen(self) -> None:
        @self._client.feature(lsp.WORKSPACE_CONFIGURATION)
        def configuration(parameters: lsp.ConfigurationParams) -> list[Any]:
            return [self._setting(item.section or "") for item in parameters.items]

        @self._client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(parameters: lsp.PublishDiagnosticsParams) -> None:
            waiting = self._published.get(parameters.uri)
            if waiting is not None and not waiting.done():
                waiting.set_result(parameters.diagnostics)

        @self._client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def register(_parameters: lsp.RegistrationParams) -> None:
            return None

    async def _start(self, command: Sequence[str], options: Mapping[str, Any] | None) -> None:
        await self._client.start_io(*command, cwd=str(self.folder))
        answer = await self._client.initialize_async(
            lsp.InitializeParams(
                capabilities=_CAPABILITIES,
                root_uri=self.folder.as_uri(),
                workspace_folders=[lsp.WorkspaceFolder(self.folder.as_uri(), self.folder.name)],
                initialization_options=options,
            )
        )
        self._pulls = answer.capabilities.diagnostic_provider is not None
        self._client.initialized(lsp.InitializedParams())
        self._client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=dict(self.settings)))

    def _open(self, text: str, name: str | None = None) -> str:
        suffix = {"yaml": "yaml"}.get(self.language, "json")
        uri = (self.folder / (name or f"ds_config_{next(self._numbers)}.{suffix}")).as_uri()
        self._published[uri] = self._loop.create_future()
        document = lsp.TextDocumentItem(uri, self.language, 1, text)
        self._client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
        return uri

    def _at_cursor(self, text: str) -> tuple[lsp.TextDocumentIdentifier, lsp.Position]:
        before, after = text.split(CURSOR)
        line = before.count("\n")
        uri = self._open(before + after)
        return lsp.TextDocumentIdentifier(uri), lsp.Position(line, len(before) - (before.rfind("\n") + 1))

    def _setting(self, section: str) -> object:
        found: Any = self.settings
        for name in section.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _run(self, waited: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
        async def limited() -> T:
            return await asyncio.wait_for(waited, TIMEOUT_SECONDS)

        return self._loop.run_until_complete(limited())


_MARKUP = [lsp.MarkupKind.Markdown, lsp.MarkupKind.PlainText]
_CAPABILITIES = lsp.ClientCapabilities(
    workspace=lsp.WorkspaceClientCapabilities(
        configuration=True,
        did_change_configuration=lsp.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
        workspace_folders=True,
    ),
    text_document=lsp.TextDocumentClientCapabilities(
        hover=lsp.HoverClientCapabilities(content_format=_MARKUP),
        completion=lsp.CompletionClientCapabilities(
            completion_item=lsp.ClientCompletionItemOptions(snippet_support=True, documentation_format=_MARKUP)
        ),
        diagnostic=lsp.DiagnosticClientCapabilities(),
    ),
)
