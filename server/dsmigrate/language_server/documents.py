"""The documents that the client has open, in step with what it shows."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lsprotocol import types

from dsmigrate.document import Document, Encoding, LineIndex, parse
from dsmigrate.editing.view import View
from dsmigrate.language_server import recognition, uris
from dsmigrate.language_server.aside import LONG
from dsmigrate.language_server.wire import Lines

logger = logging.getLogger(__name__)
Views = Callable[["OpenDocument", Document], View]


class OpenDocument:
    """One document: its text at one version, and what was made of it so far. A change makes another one.

    The tree is kept from change to change only while somebody asks for it; a document that is none of ours stays text,
    and a long one is read anew, beside the loop.
    """

    def __init__(self, item: types.TextDocumentItem, encoding: Encoding) -> None:
        """Take the document as the client opens it; positions count ``encoding`` units."""
        self.uri = item.uri
        self.path = uris.path_of(item.uri)
        self.name = uris.name_of(item.uri)
        self.language = str(getattr(item.language_id, "value", item.language_id))
        self.version = item.version
        self.encoding = encoding
        self.kind = recognition.kind_of(self.name, self.language)
        self.is_config = False
        """Whether it was recognised as a config; it stays one while it is open."""
        self._set(item.text)

    def _set(self, text: str, tree: Document | None = None) -> None:
        self.text = text
        self._tree = tree
        self._index = tree.lines if tree is not None else LineIndex(text)
        self._view: tuple[int, View] | None = None
        self.memory: dict[object, object] = {}
        """What features have worked out for this very text."""

    @property
    def is_long(self) -> bool:
        """Whether nothing may be made of it on the loop."""
        return len(self.text) > LONG

    @property
    def folder(self) -> Path | None:
        """Where the file lies; None for a document that is no file."""
        return None if self.path is None else self.path.parent

    @property
    def lines(self) -> Lines:
        """Positions of this text."""
        return Lines(self._index, self.encoding)

    @property
    def tree(self) -> Document:
        """The text as a config."""
        if self._tree is None:
            self._tree = parse(self.text)
            self._index = self._tree.lines
        return self._tree

    def changed(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int) -> OpenDocument:
        """Return the document after changes, each to the text that the one before it left."""
        made = copy.copy(self)
        made.take(changes, version)
        return made

    def take(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int) -> None:
        """Become the document after changes; for one that nobody else has in hand."""
        self.version, self._view, self.memory = version, None, {}
        for change in changes:
            self._apply(change)

    def _apply(self, change: types.TextDocumentContentChangeEvent) -> None:
        span = getattr(change, "range", None)
        if span is None:
            self._set(change.text)
            return
        start, end = self.lines.offsets(span)
        if self._tree is None or self.is_long:
            self._set(f"{self.text[:start]}{change.text}{self.text[end:]}")
        else:
            tree = self._tree.edit(start, end, change.text)
            self._set(tree.text, tree)

    def view(self, make: Views, generation: int) -> View:
        """Return the config as the settings of ``generation`` have it, made by ``make`` once for each text."""
        if self._view is None or self._view[0] != generation:
            self._view = generation, make(self, self.tree)
        return self._view[1]


class Documents:
    """Every open document by its address."""

    def __init__(self, encoding: Encoding = Encoding.UTF16) -> None:
        """Begin with nothing; positions count ``encoding`` units."""
        self.encoding = encoding
        self._open: dict[str, OpenDocument] = {}

    def __iter__(self) -> Iterator[OpenDocument]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def is_long(self, uri: object) -> bool:
        """Return whether the document at an address is open, and long."""
        document = self._open.get(uri) if isinstance(uri, str) else None
        return document is not None and document.is_long

    def get(self, uri: str) -> OpenDocument | None:
        """Return the document at an address; None when the client has not opened it."""
        return self._open.get(uri)

    def open(self, item: types.TextDocumentItem) -> OpenDocument:
        """Add a document; one that is open already is replaced."""
        self._open[item.uri] = OpenDocument(item, self.encoding)
        return self._open[item.uri]

    def change(
        self,
        changed: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Apply changes to a document; changes of one that is not open are dropped, and said in the log."""
        document = self._open.get(changed.uri)
        if document is None:
            logger.warning("a change of %s, which is not open", changed.uri)
            return
        self._open[changed.uri] = document.changed(changes, changed.version)

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)
