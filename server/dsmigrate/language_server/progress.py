"""Long work as the client shows it: what is done, how far it is, and a way for the person to cancel it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session

logger = logging.getLogger(__name__)
Token = str | int
OF_COMMAND: ContextVar[Token | None] = ContextVar("work_done_token", default=None)
"""What the client gave with the command that is being carried out, to hear of its progress."""
PATIENCE = 0.5
"""Seconds of work before it is shown to somebody who did not ask for that."""


class Work:
    """Work that is under way."""

    def __init__(self, session: Session, title: str, task: asyncio.Task[Any] | None) -> None:
        """Know the work by its title, and by the task to cancel."""
        self._session = session
        self._title = title
        self._task = task
        self._token: Token | None = None
        self._said = 0

    def begin(self, token: Token) -> None:
        """Show the work under a token that the client knows."""
        self._token = token
        if self._task is not None:
            self._session.working[token] = self._task
        self._send({"kind": "begin", "title": self._title, "cancellable": True, "percentage": 0})

    async def begin_late(self) -> None:
        """Show the work after a while, where the client agrees."""
        await asyncio.sleep(PATIENCE)
        token = f"dsmigrate-{uuid.uuid4()}"
        try:
            await self._session.server.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
        except Exception as error:  # noqa: BLE001 - whatever the client has against it
            logger.info("the client does not show progress: %s", error)
            return
        self.begin(token)

    def report(self, done: int, of: int, message: str) -> None:
        """Say that ``done`` of ``of`` steps are done, and what comes next; each percent is told once."""
        percentage = 100 * done // of
        if self._token is not None and percentage > self._said:
            self._said = percentage
            self._send({"kind": "report", "message": message, "percentage": percentage})

    def end(self) -> None:
        """Take it off the screen, if it is there."""
        if self._token is not None:
            self._send({"kind": "end"})
            self._session.working.pop(self._token, None)

    def _send(self, value: dict[str, object]) -> None:
        self._session.send(types.PROGRESS, {"token": self._token, "value": value})


@asynccontextmanager
async def working(session: Session, title: str, token: Token | None = None) -> AsyncIterator[Work]:
    """Show what is done inside: at once under the token of a request or command, else late and if the client can.

    The task that does the work is cancelled when the person says so, and its request is answered as cancelled.
    """
    work = Work(session, title, asyncio.current_task())
    token = OF_COMMAND.get() if token is None else token
    late: asyncio.Task[None] | None = None
    if token is not None:
        work.begin(token)
    elif session.client.can("window.work_done_progress"):
        late = asyncio.create_task(work.begin_late())
    try:
        yield work
    finally:
        if late is not None:
            late.cancel()
        work.end()


def cancel(session: Session, token: Token) -> None:
    """Cancel the work under a token; one that is done stays done."""
    task = session.working.pop(token, None)
    if task is not None:
        task.cancel()
