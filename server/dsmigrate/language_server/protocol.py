"""The protocol as pygls speaks it, with plain answers, documents of our own, and a reply to every wrong message."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

from dsmigrate.language_server import allocator, progress
from dsmigrate.language_server.guard import ASIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future

    from cattrs import Converter

    from dsmigrate.language_server.server import Server

logger = logging.getLogger(__name__)
_NOT_INITIALIZED = -32002
_MANY = 64
"""Requests under way beyond which those that are done are cleared away."""
_EARLY = frozenset({types.INITIALIZE, types.EXIT})


def converter() -> Converter:
    """Return what reads messages: those of methods that are not the protocol's own keep their parameters as plain data.

    pygls makes a class for each of them instead, and its converter remembers every class for ever.
    """
    made: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        made.register_structure_hook(kind, lambda data, cls: cls(**data))
    return made


class Wrong:
    """A message that is no message: why, and the id to answer, None for a notification."""

    def __init__(self, identity: str | int | None, error: JsonRpcException) -> None:
        self.identity = identity
        self.error = error


class Protocol(LanguageServerProtocol):
    """Sends dictionaries without converting them, and hands text changes to ``Server.documents``."""

    _server: Server
    _handled = 0
    _begun: Any = None
    """The future of the handler that was called last."""

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Learn who the client is; the answer is pygls's, and that commands tell how far they are."""
        self._server.client.introduce(params)
        result: types.InitializeResult = yield from super().lsp_initialize(params)
        if result.capabilities.execute_command_provider is not None:
            result.capabilities.execute_command_provider.work_done_progress = True
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:  # noqa: ANN401
        """Let go of everything; what is under way ends first, as pygls stumbles over a list that shrinks by that."""
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != self.msg_id and not future.done():
                future.cancel()
        yield from super().lsp_shutdown(*args)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take the text of a document that the client owns from now on."""
        self._server.session.aside.outdate(params.text_document.uri)
        self._server.session.documents.open(params.text_document)
        self._then(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply changes to a document."""
        self._server.session.aside.outdate(params.text_document.uri)
        self._server.session.documents.change(params.text_document, params.content_changes)
        self._then(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document."""
        session, uri = self._server.session, params.text_document.uri
        session.aside.outdate(uri)
        was_long = session.documents.is_long(uri)
        session.documents.close(uri)
        if was_long:
            session.aside.forget()
        self._then(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Generator[Any, Any, Any]:
        """Run a command with its arguments as they come: plain data that the command looks at itself."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"there is no command {params.command!r}")
        progress.OF_COMMAND.set(params.work_done_token)
        result = yield handler, (tuple(params.arguments or ()),), None
        return result

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """Cancel work that the client shows."""
        progress.cancel(self._server.session, params.token)

    def _execute_handler(
        self,
        msg_id: str | int,
        handler: Callable[..., Any],
        callback: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Call a handler; beside the loop, where it is about a long document."""
        aside = getattr(handler, ASIDE, None)
        uri = self._long(args) if aside is not None else None
        if aside is not None and uri is not None:
            handler, args = aside, (uri, *(args or ()))
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        self._begun = self._request_futures.get(msg_id)

    def _run_generator(
        self, future: Future[Any] | None, *, gen: Generator[Any, Any, Any], result_future: Future[Any]
    ) -> None:
        """Go on with a handler that waits for others; cancelled, it takes along the one that it waits for."""
        self._begun = None
        super()._run_generator(future, gen=gen, result_future=result_future)
        begun = self._begun
        if begun is not None and not begun.done():
            result_future.add_done_callback(lambda outer: outer.cancelled() and begun.cancel())

    def _long(self, args: tuple[Any, ...] | None) -> str | None:
        """Return the address of the long document that a request or a command is about, None for others."""
        params = args[0] if args else None
        if isinstance(params, tuple):  # the arguments of a command
            named = params
        else:
            data = getattr(params, "data", None)
            document = getattr(params, "text_document", None)
            named = (getattr(document, "uri", None), data.get("uri") if isinstance(data, dict) else None)
        documents = self._server.session.documents
        return next((uri for uri in named if documents.is_long(uri)), None)

    def _then(self, method: str, params: object) -> None:
        """Call the feature behind a change of a document."""
        handler = self.fm.features.get(method)
        if handler is not None:
            handler(params)

    def structure_message(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the client sends
        """Return the message in ``data``, a Wrong for one whose parameters do not fit.

        One that asks for an answer to what is no request gets an error; pygls would take it for the notification.
        """
        try:
            method = data.get("method")
            known = types.METHOD_TO_TYPES.get(method) if isinstance(method, str) else None
            if known is not None and known[1] is None and "id" in data and "jsonrpc" in data:
                raise JsonRpcInvalidRequest(f"{method} is a notification")
            return super().structure_message(data)
        except JsonRpcException as error:
            logger.warning("a message that does not fit the protocol: %.500r", data)
            identity = data.get("id") if "method" in data else None
            if isinstance(error, JsonRpcInternalError):  # pygls's word for a message of no known form
                error = JsonRpcInvalidRequest()
            return Wrong(identity if isinstance(identity, str | int) else None, error)

    def handle_message(self, message: Any) -> None:  # noqa: ANN401
        """Handle a message; one that is wrong, or comes before its time, is answered with an error."""
        if isinstance(message, Wrong):
            if message.identity is not None:
                self._send_response(message.identity, error=message.error.to_response_error())
            return
        if not hasattr(message, "jsonrpc"):
            logger.warning("what came is no message of the protocol: %.200r", message)
            self._refuse(JsonRpcInvalidRequest())
            return
        if self._workspace is None and getattr(message, "method", types.EXIT) not in _EARLY:
            identity = getattr(message, "id", None)
            if identity is not None:
                error = types.ResponseError(code=_NOT_INITIALIZED, message="the server is not initialized yet")
                self._send_response(identity, error=error)
            return
        if self._shutdown and getattr(message, "id", None) is not None and hasattr(message, "method"):
            self._send_response(message.id, error=JsonRpcInvalidRequest("shut down").to_response_error())
            return
        super().handle_message(message)
        if len(self._request_futures) > _MANY:  # pygls keeps those of notifications for ever
            self._request_futures = {name: work for name, work in self._request_futures.items() if not work.done()}
        self._handled += 1
        if not self._handled % allocator.EVERY:
            allocator.give_back()

    def handle_no_json(self, error: Exception) -> None:
        """Answer a body that is no JSON."""
        logger.warning("what came is no JSON: %s", error)
        self._refuse(JsonRpcParseError())

    def _refuse(self, error: JsonRpcException) -> None:
        """Answer what cannot be told the id of."""
        self._send_data({"jsonrpc": self.VERSION, "id": None, "error": _plain(error.to_response_error())})

    @property
    def said_goodbye(self) -> bool:
        """Whether the client asked for the end, as the protocol wants it."""
        return bool(self._shutdown)

    def plain(self, data: object) -> dict[str, Any]:
        """Return a message part of the client as plain data."""
        return cast("dict[str, Any]", self._converter.unstructure(data))

    def send(self, method: str, params: object) -> None:
        """Send a notification with plain parameters."""
        self._send_data({"jsonrpc": self.VERSION, "method": method, "params": params})

    def _send_response(
        self,
        msg_id: str | int,
        result: Any | None = None,  # noqa: ANN401
        error: types.ResponseError | None = None,
    ) -> None:
        self._result_types.pop(msg_id, None)
        if error is not None:
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "error": _plain(error)})
        else:
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})

    def _serialize_message(self, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return a class of the protocol as plain data; anything else has no business in a message."""
        if hasattr(data, "__attrs_attrs__"):
            return cast("dict[str, Any]", self._converter.unstructure(data))
        value = getattr(data, "value", None)
        if value is None:
            raise TypeError(f"{type(data).__name__} cannot be sent")
        return cast("dict[str, Any]", value)


def _plain(error: types.ResponseError) -> dict[str, Any]:
    plain: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        plain["data"] = json.loads(json.dumps(error.data, default=str))
    return plain
