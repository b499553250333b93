"""Around every handler: what goes wrong in one is logged with its context, answered, and stays there."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInternalError

from dsmigrate.language_server.registry import Entry
from dsmigrate.patience import CancelledWorkError, LimitError

if TYPE_CHECKING:
    from dsmigrate.language_server.server import Server

logger = logging.getLogger(__name__)
ASIDE = "aside"
"""The attribute of a handler that has a coroutine function for long documents, from address and parameters."""


class HandlerError(JsonRpcInternalError):
    """A handler failed, and the log has it already."""


def guarded(entry: Entry, ls: Server) -> Callable[..., Any]:
    """Return the handler of an entry with the session filled in; its failures become a HandlerError.

    Errors of the protocol, which are answers, pass.
    """
    if entry.waits:

        async def awaited(params: Any = None) -> Any:  # noqa: ANN401 - any of the protocol's
            try:
                return await entry.handler()(ls.session, params)
            except (JsonRpcException, asyncio.CancelledError):
                raise
            except Exception as error:
                raise _failed(entry, params, error) from error

        return awaited

    handler: Callable[..., Any] | None = None

    def called(params: Any = None) -> Any:  # noqa: ANN401
        nonlocal handler
        try:
            handler = handler or entry.handler()
            return handler(ls.session, params)
        except JsonRpcException:
            raise
        except Exception as error:
            raise _failed(entry, params, error) from error

    if not entry.acts:
        setattr(called, ASIDE, functools.partial(_beside, entry, ls, called))
    return called


async def _beside(entry: Entry, ls: Server, called: Callable[..., Any], uri: str, params: object) -> Any:  # noqa: ANN401
    """Answer about a long document; raises the error of the protocol where its text is another one by now."""
    try:
        return await ls.session.aside.run(uri, functools.partial(called, params))
    except LimitError:
        logger.warning("%s took too long%s", entry.name, _where(params))
        return None
    except CancelledWorkError:
        if entry.name == types.TEXT_DOCUMENT_DIAGNOSTIC:
            code, data = types.LSPErrorCodes.ServerCancelled.value, {"retriggerRequest": True}
            raise JsonRpcException("the document has changed", code, data) from None
        raise JsonRpcContentModified("the document has changed") from None


def _failed(entry: Entry, params: object, error: Exception) -> HandlerError:
    logger.error("%s failed%s", entry.name, _where(params), exc_info=error)
    return HandlerError(f"{entry.name} failed: {type(error).__name__}: {error}")


def _where(params: object) -> str:
    """Return " in file:///… at 3:7", as far as the parameters say so."""
    document = getattr(params, "text_document", None)
    where = f" in {document.uri}" if document is not None else ""
    version = getattr(document, "version", None)
    where += f" (version {version})" if version is not None else ""
    position = getattr(params, "position", None)
    return f"{where} at {position.line + 1}:{position.character + 1}" if position is not None else where
