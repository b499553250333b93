"""Whether an open file differs from its last commit: git is asked beside the loop, and no request waits for it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsmigrate.files.text import SourceError, decode
from dsmigrate.language_server.features.lifecycle import ask_again

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session

_FRESH = 5.0
"""Seconds after which git is asked again."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The text of a file in its last commit, None where it is in none, and when git was asked for it."""

    text: str | None
    asked: float


def differs(session: Session, document: OpenDocument) -> bool:
    """Return whether the file is committed and open with another text, as far as that is known.

    What is not known, or is some seconds old, is found out; if the answer is another one, the client asks again. For a
    client that does not trust the folder (``mayRunGit``) git is not asked.
    """
    if session.client.option("mayRunGit") is False:
        return False
    known = session.committed.get(document.uri)
    if document.path is not None and (known is None or time.monotonic() - known.asked > _FRESH):
        text = None if known is None else known.text
        session.committed[document.uri] = Committed(text, time.monotonic())
        session.begin(_find_out(session, document.uri, document.path))
    return known is not None and known.text is not None and known.text != document.text


async def _find_out(session: Session, uri: str, path: Path) -> None:
    text = await asyncio.to_thread(_committed, path)
    before = session.committed.get(uri)
    session.committed[uri] = Committed(text, time.monotonic())
    if before is None or before.text != text:
        ask_again(session, "code_lens")


def _committed(path: Path) -> str | None:
    from dsmigrate.diff.git import GitError, committed  # noqa: PLC0415 - the first lens must not wait for it

    try:
        return decode(committed(path).data).text
    except (GitError, SourceError):
        return None
