"""What a request is about: a config file, or the config inside of a script that lies at its position."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.document import TextEdit
from dsmigrate.editing.view import View
from dsmigrate.language_server.recognition import Kind
from dsmigrate.language_server.yaml import yaml_of

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data, Lines


@dataclass(frozen=True, slots=True)
class Asked:
    """A config with the document it stands in: the whole of a file, or a dictionary in a script."""

    document: OpenDocument
    view: View
    lines: Lines

    @property
    def is_python(self) -> bool:
        """Whether it is a dictionary in a script."""
        return self.document.kind is Kind.PYTHON

    def spelled(self, text: str) -> str:
        """Return JSON as the document's language writes it."""
        if not self.is_python:
            return text
        from dsmigrate.editing.python import as_python  # noqa: PLC0415

        return as_python(text)

    def edits(self, edits: Iterable[TextEdit]) -> list[Data]:
        """Return edits as the protocol has them, in the document's language."""
        return [self.lines.edit(TextEdit(edit.start, edit.end, self.spelled(edit.text))) for edit in edits]


def asked_of(session: Session, uri: str) -> Asked | None:
    """Return the config that a whole document is; None for one that is none of ours, and for scripts."""
    document = session.config(uri)
    return None if document is None else Asked(document, session.view(document), document.lines)


def configs_in(session: Session, uri: str) -> list[Asked]:
    """Return the config that a whole document is, as JSON or in the YAML of ``accelerate launch``; none for others."""
    asked = asked_of(session, uri)
    if asked is not None:
        return [asked]
    document = session.documents.get(uri)
    found = None if document is None else yaml_of(session, document)
    return [] if document is None or found is None else [Asked(document, view, document.lines) for view in found.views]


def asked_at(session: Session, uri: str, position: types.Position) -> tuple[Asked, int] | None:
    """Return the config at a position, with the offset; None where there is none."""
    document = session.documents.get(uri)
    if document is None:
        return None
    if document.kind is Kind.PYTHON:
        offset = document.lines.offset(position)
        inside = (asked for asked in scripts(session, document) if _holds(asked, offset))
        found = next(inside, None)
        return None if found is None else (found, offset)
    if not session.takes(document):
        return None
    view = session.view(document)
    return Asked(document, view, document.lines), document.lines.offset(position)


def scripts(session: Session, document: OpenDocument) -> list[Asked]:
    """Return the configs that stand as dictionaries in a script."""
    key = ("literals", session.generation)
    if document.kind is not Kind.PYTHON or not session.settings(document).enable:
        return []
    if key not in document.memory:
        from dsmigrate.language_server import embedding  # noqa: PLC0415

        document.memory[key] = embedding.views_of(session, document)
    views: Any = document.memory[key]
    return [Asked(document, view, document.lines) for view in views]


def _holds(asked: Asked, offset: int) -> bool:
    root = asked.view.document.root
    return root is not None and root.start < offset and (offset < root.end or not _is_closed(root))


def _is_closed(root: Any) -> bool:  # noqa: ANN401 - a node of any kind
    return bool(getattr(root, "is_closed", True))
