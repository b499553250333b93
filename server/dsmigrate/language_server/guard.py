"""Around every handler: what goes wrong in one is logged with its context, answered, and stays there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcException, JsonRpcInternalError

from dsmigrate.language_server.registry import Entry

if TYPE_CHECKING:
    from dsmigrate.language_server.server import Server

logger = logging.getLogger(__name__)


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

    return called


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
