"""The server as pygls knows it; what is not the protocol's lives in ``session.py``, which is made when first needed."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from dsmigrate import __version__
from dsmigrate.language_server.client import Client
from dsmigrate.language_server.guard import HandlerError, guarded
from dsmigrate.language_server.protocol import Protocol
from dsmigrate.language_server.registry import COMMANDS, FEATURES

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session

NAME = "dsmigrate"
logger = logging.getLogger(__name__)


class Server(LanguageServer):
    """One connection with one client."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            NAME,
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        self.client = Client()
        for entry in FEATURES:
            self.feature(entry.name, entry.options)(guarded(entry, self))
        for entry in COMMANDS:
            self.command(entry.name)(guarded(entry, self))

    @cached_property
    def session(self) -> Session:
        """What is open and which settings hold."""
        from dsmigrate.language_server.session import Session  # noqa: PLC0415 - after the answer to initialize

        return Session(self)

    def report_server_error(self, error: Exception, source: object) -> None:
        """Leave a word in the log, unless the handler did; the session goes on, and nobody is shown a box."""
        if not isinstance(error, HandlerError) and source is not FeatureRequestError:
            logger.error("%s", error, exc_info=error)
