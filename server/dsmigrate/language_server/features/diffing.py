"""What a config change does, beside the last commit, another file or a text: as Markdown, and for panels as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.language_server.progress import working
from dsmigrate.language_server.uris import name_of, path_of

if TYPE_CHECKING:
    from dsmigrate.diff.job import Source
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_SIDES = ("old", "new")


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

    Instead of an address a side may be an object of ``name`` and ``text``, which is read as if it lay beside the other
    side. Answers ``markdown``, the ``verdict`` in a line and the worst ``severity``; for panels the ``report`` of
    ``schemas/output/diff.schema.json``, the name of the ``consumer``, the ``texts`` of both sides as they were read,
    and ``memory``: bytes per GPU at the peak by what takes them, empty for a side where they are not known. ``error``
    where a side cannot be read.
    """
    sides = [argument for argument in arguments[:2] if isinstance(argument, str)]
    beside = path_of(sides[-1]) if sides else None
    folder = None if beside is None else beside.parent
    left, right = (_side(session, arguments, index, folder) for index in (0, 1))
    return await _compared(session, sides[-1] if sides else "", lambda: left, lambda: right)


async def _compared(session: Session, uri: str, old: Callable[[], Source], new: Callable[[], Source]) -> Data:
    check = session.settings_in(_folder(uri), uri).check

    def work() -> Data:
        from dsmigrate.diff.formats import json, markdown  # noqa: PLC0415 - deepdiff takes its time
        from dsmigrate.diff.formats.picture import figures  # noqa: PLC0415
        from dsmigrate.diff.git import GitError  # noqa: PLC0415
        from dsmigrate.diff.job import UnreadableError  # noqa: PLC0415
        from dsmigrate.diff.job import compare as compare_sources  # noqa: PLC0415
        from dsmigrate.settings.diff import DiffSettings  # noqa: PLC0415

        try:
            sources = old(), new()
            compared = compare_sources(*sources, DiffSettings(check=check))
        except (GitError, UnreadableError) as error:
            return {"error": str(error)}
        return {
            "markdown": markdown.render(compared),
            "verdict": compared.result.verdict,
            "severity": compared.result.worst.value,
            "consumer": compared.new.consumer.title,
            "report": json.document(compared),
            "texts": dict(zip(_SIDES, (view.document.text for view in (compared.old, compared.new)), strict=True)),
            "memory": dict(zip(_SIDES, map(dict, figures(compared)), strict=True)),
        }

    async with working(session, "Comparing configs"):
        return await session.aside.beside(work)


def _side(session: Session, arguments: Sequence[Any], index: int, folder: Path | None) -> Source:
    given = arguments[index] if index < len(arguments) else None
    if not isinstance(given, dict):
        return _source(session, _uri(arguments, index))
    name, text = given.get("name"), given.get("text")
    if not isinstance(name, str) or not isinstance(text, str):
        raise JsonRpcInvalidParams(f"argument {index + 1} has no name and text")
    from dsmigrate.diff.job import Source  # noqa: PLC0415

    return Source(name, text.encode("utf-8", "replace"), folder)


def _source(session: Session, uri: str) -> Source:
    from dsmigrate.diff.job import Source  # noqa: PLC0415

    document, path = session.documents.get(uri), path_of(uri)
    if document is not None:
        return Source(document.name, document.text.encode("utf-8", "replace"), document.folder)
    if path is None:
        raise JsonRpcInvalidParams(f"{uri} is neither open nor a file")
    try:
        return Source(name_of(uri), read(path), path.parent)
    except SourceError as error:
        raise JsonRpcInvalidParams(f"{path}: {error.message}") from None


def _folder(uri: str) -> Path | None:
    path = path_of(uri)
    return None if path is None else path.parent


def _uri(arguments: Sequence[Any], index: int) -> str:
    if index >= len(arguments) or not isinstance(arguments[index], str):
        raise JsonRpcInvalidParams(f"argument {index + 1} is no address")
    return str(arguments[index])
