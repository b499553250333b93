"""What a config change does, beside the last commit or another file, as Markdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from dsmigrate.language_server.uris import name_of, path_of

if TYPE_CHECKING:
    from dsmigrate.diff.job import Source
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data


async def with_head(session: Session, arguments: Sequence[Any]) -> Data:
    """Compare a config, as it is open or on the disk, with its last commit.

    The arguments are its address and, if not HEAD, the revision. Answers as ``compare``.
    """
    uri = _uri(arguments, 0)
    path = path_of(uri)
    revision = str(arguments[1]) if len(arguments) > 1 else "HEAD"
    if path is None:
        raise JsonRpcInvalidParams(f"{uri} is no file, so that git does not know it")
    new = _source(session, uri)

    def before() -> Source:
        from dsmigrate.diff.git import committed  # noqa: PLC0415

        return committed(path, revision)

    return await _compared(session, uri, before, lambda: new)


async def compare(session: Session, arguments: Sequence[Any]) -> Data:
    """Compare two configs by their addresses, the old one first; the text of an open document counts as it is.

    Answers ``markdown``, the ``verdict`` in a line and the worst ``severity``; ``error`` where a side cannot be read.
    """
    old, new = _uri(arguments, 0), _uri(arguments, 1)
    left, right = _source(session, old), _source(session, new)
    return await _compared(session, new, lambda: left, lambda: right)


async def _compared(session: Session, uri: str, old: Callable[[], Source], new: Callable[[], Source]) -> Data:
    check = session.settings_in(_folder(uri), uri).check

    def work() -> Data:
        from dsmigrate.diff.formats import markdown  # noqa: PLC0415 - deepdiff takes its time
        from dsmigrate.diff.git import GitError  # noqa: PLC0415
        from dsmigrate.diff.job import UnreadableError  # noqa: PLC0415
        from dsmigrate.diff.job import compare as compare_sources  # noqa: PLC0415
        from dsmigrate.settings.diff import DiffSettings  # noqa: PLC0415

        try:
            compared = compare_sources(old(), new(), DiffSettings(check=check))
        except (GitError, UnreadableError) as error:
            return {"error": str(error)}
        return {
            "markdown": markdown.render(compared),
            "verdict": compared.result.verdict,
            "severity": compared.result.worst.value,
        }

    return await asyncio.get_running_loop().run_in_executor(None, work)


def _source(session: Session, uri: str) -> Source:
    from dsmigrate.diff.job import Source  # noqa: PLC0415

    document, path = session.documents.get(uri), path_of(uri)
    if document is not None:
        return Source(document.name, document.text.encode("utf-8", "replace"), document.folder)
    if path is None:
        raise JsonRpcInvalidParams(f"{uri} is neither open nor a file")
    try:
        return Source(name_of(uri), path.read_bytes(), path.parent)
    except OSError as error:
        raise JsonRpcInvalidParams(f"{path}: {error.strerror}") from None


def _folder(uri: str) -> Path | None:
    path = path_of(uri)
    return None if path is None else path.parent


def _uri(arguments: Sequence[Any], index: int) -> str:
    if index >= len(arguments) or not isinstance(arguments[index], str):
        raise JsonRpcInvalidParams(f"argument {index + 1} is no address")
    return str(arguments[index])
