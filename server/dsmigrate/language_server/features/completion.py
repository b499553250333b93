"""Completion: what could be written at a position, with its documentation when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.editing.completion import Item, Kind, complete, documentation
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.language_server.asking import Asked, asked_at
from dsmigrate.language_server.features.reading import markup
from dsmigrate.language_server.views import asked_for
from dsmigrate.language_server.yaml import yaml_of

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_KINDS = {
    Kind.KEY: types.CompletionItemKind.Property.value,
    Kind.SECTION: types.CompletionItemKind.Module.value,
    Kind.VALUE: types.CompletionItemKind.Value.value,
    Kind.CHOICE: types.CompletionItemKind.EnumMember.value,
    Kind.TYPE: types.CompletionItemKind.Class.value,
    Kind.SNIPPET: types.CompletionItemKind.Snippet.value,
    Kind.FILE: types.CompletionItemKind.File.value,
}
_ITEM = "text_document.completion.completion_item"
_AGAIN = {"title": "", "command": "editor.action.triggerSuggest"}
"""VS Code's own command; other clients, which do not know it, never get it."""


def completion(session: Session, params: types.CompletionParams) -> Data | None:
    """Answer what could be written at a position; the list is whole, clients filter it while the person types."""
    found = asked_at(session, params.text_document.uri, params.position)
    if found is None:
        return _of_yaml(session, params)
    asked, offset = found
    snippets = bool(session.client.can(f"{_ITEM}.snippet_support"))
    items = complete(asked.view, offset, snippets=snippets)
    writer = _Writer(session, asked)
    return {"isIncomplete": False, "items": [writer.item(item) for item in items]}


def _of_yaml(session: Session, params: types.CompletionParams) -> Data | None:
    """Answer the fields of the YAML of ``accelerate launch``, and their values."""
    document = session.documents.get(params.text_document.uri)
    if document is None or yaml_of(session, document) is None:
        return None
    from dsmigrate.convert.forms.completing import offers  # noqa: PLC0415 - what few files need

    known = knowledge(asked_for(session.settings(document), document.folder).version)
    found = offers(document.text, document.lines.offset(params.position), known)
    about = {"version": known.version, "consumer": Consumer.ACCELERATE.value}
    items = [
        {
            "label": offer.label,
            "kind": _KINDS[Kind.VALUE if offer.is_value else Kind.KEY],
            "sortText": f"{number:02}",
            "filterText": offer.label,
            "textEdit": {"range": document.lines.range(offer.start, offer.end), "newText": offer.text},
            **({"detail": offer.detail} if offer.detail else {}),
            "data": {**about, "item": ("key", offer.path)},
        }
        for number, offer in enumerate(found)
    ]
    return {"isIncomplete": False, "items": items}


def resolve(session: Session, params: types.CompletionItem) -> Data:
    """Answer an item with its documentation."""
    made: Data = session.server.protocol.plain(params)
    data: Any = params.data
    text = ""
    if isinstance(data, dict) and isinstance(data.get("item"), Sequence):
        text = documentation(
            str(data.get("version", "")), str(data.get("consumer", "")), tuple(str(part) for part in data["item"])
        )
    if text:
        formats = f"{_ITEM}.documentation_format"
        said = markup(session, formats, text)
        made["documentation"] = said["value"] if session.client.can(formats) is None else said
    return made


class _Writer:
    """Writes items for one client and one config: what the client can use is looked up once."""

    def __init__(self, session: Session, asked: Asked) -> None:
        self.asked = asked
        can = session.client.can
        self.details = bool(can(f"{_ITEM}.label_details_support"))
        self.deprecated = can(f"{_ITEM}.tag_support") is not None
        self.preselect = bool(can(f"{_ITEM}.preselect_support"))
        self.modes = can(f"{_ITEM}.insert_text_mode_support") is not None
        self.again = session.client.is_vs_code
        self.about = {"version": asked.view.known.version, "consumer": asked.view.consumer.value}
        self.ranges: dict[tuple[int, int], Data] = {}

    def item(self, item: Item) -> Data:
        """Return one item."""
        asked = self.asked
        span = (item.start, item.end)
        if span not in self.ranges:
            self.ranges[span] = asked.lines.range(*span)
        made: Data = {
            "label": item.label,
            "kind": _KINDS[item.kind],
            "sortText": item.sort_text,
            "filterText": item.filter_text,
            "textEdit": {"range": self.ranges[span], "newText": asked.spelled(item.new_text)},
            "insertTextFormat": 2 if item.is_snippet else 1,
        }
        if item.detail:
            made["detail"] = item.detail
        if item.description and self.details:
            made["labelDetails"] = {"description": item.description}
        if item.deprecated and self.deprecated:
            made["tags"] = [types.CompletionItemTag.Deprecated.value]
        if item.preselect and self.preselect:
            made["preselect"] = True
        if self.modes:
            made["insertTextMode"] = types.InsertTextMode.AsIs.value
        if item.edits:
            made["additionalTextEdits"] = asked.edits(item.edits)
        if item.trigger_again and self.again:
            made["command"] = _AGAIN
        if item.data:
            made["data"] = {**self.about, "item": item.data}
        return made
