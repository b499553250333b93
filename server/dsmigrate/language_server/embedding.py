"""Configs inside of scripts as views of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsmigrate.editing.python import NOT_OF_PYTHON, literals
from dsmigrate.language_server import views

if TYPE_CHECKING:
    from dsmigrate.editing.view import View
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session


def views_of(session: Session, document: OpenDocument) -> list[View]:
    """Return a view of each config dictionary of a script; offsets are those of the script."""
    settings = session.settings(document)
    return [
        views.make(
            literal.document,
            document,
            settings,
            unknown=literal.masked.unknown,
            whole=literal.is_whole,
            shows_findings=session.client.is_vs_code,
            ignore=NOT_OF_PYTHON,
        )
        for literal in literals(document.text)
    ]
