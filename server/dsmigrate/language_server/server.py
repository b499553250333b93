"""The server as pygls knows it; what is not the protocol's lives in ``session.py``, which is made when first needed."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer

from dsmigrate import __version__
from dsmigrate.language_server.client import Client
from dsmigrate.language_server.guard import HandlerError, guarded
from dsmigrate.language_server.input import Input
from dsmigrate.language_server.protocol import Protocol, converter
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
            converter_factory=converter,
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

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serve on standard input and output until the client leaves."""
        self._stop_event = threading.Event()
        self.protocol.set_writer(StdoutWriter(stdout or sys.stdout.buffer))
        reader = Input((stdin or sys.stdin).fileno())
        serving = run_async(self._stop_event, reader, self.protocol, error_handler=self.report_server_error)
        try:
            asyncio.run(serving)
        except BrokenPipeError:
            logger.warning("the client is gone")
        except (KeyboardInterrupt, SystemExit):
            pass
        finally:
            if "session" in self.__dict__:
                self.session.aside.end()
            self.shutdown()  # type: ignore[no-untyped-call]

    def report_server_error(self, error: Exception, source: object) -> None:
        """Leave a word in the log, unless the handler did; the session goes on, and nobody is shown a box."""
        if source is JsonRpcException and isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, RecursionError)):
            self.protocol.handle_no_json(error)
            return
        if not isinstance(error, HandlerError) and source is not FeatureRequestError:
            logger.error("%s", error, exc_info=error)
