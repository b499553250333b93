"""What a config says where one looks: hovers, inlay hints, and a line above it that sums it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from dsmigrate.editing import hints as hinting
from dsmigrate.editing.hover import Links, hover_at
from dsmigrate.editing.markdown import plain
from dsmigrate.editing.summary import summary
from dsmigrate.language_server.asking import Asked, asked_at, configs_in, scripts
from dsmigrate.language_server.features.committed import differs
from dsmigrate.language_server.features.scripts import lenses
from dsmigrate.language_server.recognition import Kind
from dsmigrate.languages import say

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_MARKDOWN = types.MarkupKind.Markdown
_HOVER_FORMATS = "text_document.hover.content_format"


def markup(session: Session, formats: str, text: str) -> Data:
    """Return Markdown for clients that take it (``formats`` names the capability), else plain text."""
    if _marks_up(session, formats):
        return {"kind": _MARKDOWN.value, "value": text}
    return {"kind": types.MarkupKind.PlainText.value, "value": plain(text)}


def _marks_up(session: Session, formats: str) -> bool:
    return _MARKDOWN in (session.client.can(formats) or ())


def hover(session: Session, params: types.HoverParams) -> Data | None:
    """Answer what is known of the key or value at a position."""
    found = asked_at(session, params.text_document.uri, params.position)
    if found is None:
        return _hover_of_yaml(session, params)
    return _hover(session, *found)


def _hover_of_yaml(session: Session, params: types.HoverParams) -> Data | None:
    for asked in configs_in(session, params.text_document.uri):
        if asked.document.kind is Kind.YAML:
            said = _hover(session, asked, asked.lines.offset(params.position))
            if said is not None:
                return said
    return None


def _hover(session: Session, asked: Asked, offset: int) -> Data | None:
    command = str(session.client.option("explainCommand") or "")
    in_text = _marks_up(session, _HOVER_FORMATS)
    said = hover_at(asked.view, offset, Links(command, asked.document.uri if command else "", in_text))
    if said is None:
        return None
    return {
        "contents": markup(session, _HOVER_FORMATS, said.markdown),
        "range": asked.lines.range(said.start, said.end),
    }


def inlay_hints(session: Session, params: types.InlayHintParams) -> list[Data] | None:
    """Answer what can be said beside the values of a range."""
    document = session.documents.get(params.text_document.uri)
    if document is None or not session.settings(document).inlay_hints:
        return None
    start, end = document.lines.offsets(params.range)
    return [
        {
            "position": asked.lines.position(hint.offset),
            "label": hint.text,
            "paddingLeft": True,
            "paddingRight": bool(asked.view.text[hint.offset : hint.offset + 1].strip()),
            **({"tooltip": markup(session, _HOVER_FORMATS, hint.tooltip)} if hint.tooltip else {}),
        }
        for asked in configs_of(session, document)
        for hint in hinting.hints(asked.view, start, end)
    ]


def code_lenses(session: Session, params: types.CodeLensParams) -> list[Data] | None:
    """Answer the line above a config: what it comes to, and the way to its changes since the last commit, if any.

    A client that shows elsewhere what a file comes to (``showsStatus``) gets that for dictionaries of scripts alone.
    """
    document = session.documents.get(params.text_document.uri)
    if document is None or not session.settings(document).code_lens:
        return None
    made = lenses(document)
    shows_status = bool(session.client.option("showsStatus"))
    for asked in configs_of(session, document):
        root = asked.view.document.root
        if root is None:
            continue
        span = asked.lines.range(root.start, min(root.start + 1, root.end))
        if asked.is_python or not shows_status:
            made.append({"range": span, "command": {"title": summary(asked.view), "command": ""}})
        if not asked.is_python and differs(session, document):
            command = {
                "title": say("Compare with HEAD"),
                "command": "dsmigrate.diffWithHead",
                "arguments": [document.uri],
            }
            made.append({"range": span, "command": command})
    return made


def configs_of(session: Session, document: OpenDocument) -> list[Asked]:
    """Return the configs of a document: itself, or the dictionaries of a script."""
    if document.kind is Kind.PYTHON:
        return scripts(session, document)
    return configs_in(session, document.uri)
