"""One session: who the client is, what it has open, and which settings hold where."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.document import Document
from dsmigrate.editing.view import View
from dsmigrate.language_server import recognition, views
from dsmigrate.language_server.aside import Aside
from dsmigrate.language_server.client import Client
from dsmigrate.language_server.documents import Documents, OpenDocument
from dsmigrate.language_server.settings import EditorSettings, section, settings_for
from dsmigrate.language_server.wire import encoding_of
from dsmigrate.languages import tag_of, use

if TYPE_CHECKING:
    from dsmigrate.language_server.features.committed import Committed
    from dsmigrate.language_server.server import Server
    from dsmigrate.language_server.wire import Data

logger = logging.getLogger(__name__)


class Session:
    """What the handlers share."""

    def __init__(self, server: Server) -> None:
        """Begin with what the client said when it introduced itself."""
        self.server = server
        self.client: Client = server.client
        self.documents = Documents(encoding_of(server.workspace.position_encoding))
        self.aside = Aside()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.tasks: set[asyncio.Task[None]] = set()
        """What goes on beside the loop and answers no request; the loop itself keeps no task."""
        self.published: set[str] = set()
        """Addresses of documents that diagnostics were sent for."""
        self.working: dict[str | int, asyncio.Task[Any]] = {}
        """Work that the client shows, by the token it is known by."""
        self.files: list[tuple[Path, str]] | None = None
        """The configs of the workspace folders with their addresses, None when they have to be looked for."""
        self.closed: dict[str, tuple[tuple[int, int, int], list[Data]]] = {}
        """Diagnostics of files that are not open, by address, with what they hold for: see ``workspace.py``."""
        self.committed: dict[str, Committed] = {}
        """What git has of open files, by address: see ``committed.py``."""
        self.generation = 0
        """Counts changes of settings; whatever was made under an older one is made again."""
        self.changed: dict[str, Any] = {}
        """Settings that commands changed, by name; they win over all others."""
        self._given: Mapping[str, Any] = section(self.client.options)
        self._scoped: dict[str, Mapping[str, Any]] = {}
        self._settings: dict[tuple[Path | None, str], EditorSettings] = {}
        self._said: set[str] = set()
        self._speak()

    def send(self, method: str, params: object) -> None:
        """Send a notification of plain data, from whatever thread."""
        if threading.get_ident() == self._thread:
            self.server.protocol.send(method, params)
        else:
            self._loop.call_soon_threadsafe(self.server.protocol.send, method, params)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the loop do work that answers no request, from whatever thread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.begin, work)
            return
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def settings(self, document: OpenDocument) -> EditorSettings:
        """Return the settings for a document, and say once what is wrong with them."""
        return self.settings_in(document.folder, document.uri)

    def settings_in(self, folder: Path | None, uri: str = "") -> EditorSettings:
        """Return the settings that hold in a folder; ``uri`` finds the workspace folder whose answers count."""
        scope = self.client.folder_of(uri)
        if (folder, scope) not in self._settings:
            layers = (self._given, self._scoped.get(scope, {}), self.changed)
            found = settings_for(folder, layers)
            self._settings[folder, scope] = found
            for error in found.errors:
                self.say_once(error)
        return self._settings[folder, scope]

    def give(self, options: object) -> None:
        """Take settings that hold everywhere."""
        self._given = {**self._given, **section(options)}
        self.reset()

    def give_for(self, folder_uri: str, options: object) -> bool:
        """Take settings that hold in one workspace folder, "" for outside of all; return whether they are others."""
        taken = section(options)
        if taken == self._scoped.get(folder_uri, {}):
            return False
        self._scoped[folder_uri] = taken
        return True

    def reset(self) -> None:
        """Forget what was made under the settings so far."""
        self._settings.clear()
        self._speak()
        self.files = None
        self.generation += 1

    def _speak(self) -> None:
        """Speak the language that the settings ask for, else that of the editor."""
        use(self.settings_in(None).check.lang or tag_of(self.client.locale))

    def config(self, uri: str) -> OpenDocument | None:
        """Return an open document that is a config and that the settings do not turn off."""
        document = self.documents.get(uri)
        return document if document is not None and self.takes(document) else None

    def takes(self, document: OpenDocument) -> bool:
        """Return whether a document is a config and its settings do not turn us off."""
        if document.kind is not recognition.Kind.JSON:
            return False
        settings = self.settings(document)
        return settings.enable and recognition.recognise(document, settings.check)

    def view(self, document: OpenDocument) -> View:
        """Return a config as its settings, and what lies around it, have it."""
        return document.view(self._make_view, self.generation)

    def _make_view(self, document: OpenDocument, tree: Document) -> View:
        return views.make(tree, document, self.settings(document), shows_findings=self.client.is_vs_code)

    def workspace_edit(self, document: OpenDocument, edits: list[Data]) -> Data:
        """Return edits of one document as a change of the workspace, tied to its version where the client can."""
        if self.client.can("workspace.workspace_edit.document_changes"):
            identifier = {"uri": document.uri, "version": document.version}
            return {"documentChanges": [{"textDocument": identifier, "edits": edits}]}
        return {"changes": {document.uri: edits}}

    def say_once(self, text: str) -> None:
        """Show a warning to the person, once in a session."""
        if text not in self._said:
            self._said.add(text)
            logger.warning("%s", text)
            self.send(types.WINDOW_SHOW_MESSAGE, {"type": types.MessageType.Warning.value, "message": text})
