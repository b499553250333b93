"""Training scripts: the offer to convert them, and the conversion as a change of the workspace to look through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.language_server.progress import working
from dsmigrate.language_server.recognition import Kind
from dsmigrate.language_server.uris import uri_of

if TYPE_CHECKING:
    from dsmigrate.editing.python.conversion import Converted
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

logger = logging.getLogger(__name__)
COMMAND = "dsmigrate.convertScript"
TITLE = "Convert to DeepSpeed"
KIND = "refactor.rewrite.dsmigrate"


def wraps_in(document: OpenDocument) -> tuple[tuple[int, int], ...]:
    """Return where a script wraps its model in DDP; nothing for other documents."""
    if document.kind is not Kind.PYTHON or document.path is None:
        return ()
    if "wraps" not in document.memory:
        from dsmigrate.editing.python.conversion import wraps  # noqa: PLC0415

        document.memory["wraps"] = wraps(document.text)
    found: Any = document.memory["wraps"]
    return tuple(found)


def lenses(document: OpenDocument) -> list[Data]:
    """Return the offer above the line of each wrap."""
    lines = document.lines
    return [
        {"range": lines.range(*span), "command": {"title": TITLE, "command": COMMAND, "arguments": [document.uri]}}
        for span in wraps_in(document)[:1]
    ]


def actions(document: OpenDocument, start: int, end: int) -> list[Data]:
    """Return the offer at a wrap that a range touches; what it changes is worked out when it is chosen."""
    lines = document.lines.index
    touched = [
        span for span in wraps_in(document) if lines.line_of(span[0]) <= lines.line_of(end) and span[1] >= start
        and lines.line_of(start) <= lines.line_of(span[1])
    ]  # fmt: skip
    if not touched:
        return []
    command = {"title": TITLE, "command": COMMAND, "arguments": [document.uri]}
    return [{"title": TITLE, "kind": KIND, "command": command}]


async def convert_script(session: Session, arguments: Sequence[Any]) -> Data:
    """Convert an open script and have the client apply the change, each part of it marked with its reason.

    The argument is the script's address. The answer says what became of it: ``status``, ``reasons`` (what is refused or
    left to do), ``launch``, and ``edit``, which is also sent as ``workspace/applyEdit`` unless a second argument is
    false. For panels there are the ``report`` of the file as ``schemas/output/migrate.schema.json`` has it, the text of
    the script ``after`` the conversion, and the ``config`` beside it: its address, its text, and whether another one
    ``isThere`` already, which the edit leaves as it is. Nothing is written to the disk.
    """
    uri = str(arguments[0]) if arguments else ""
    document = session.documents.get(uri)
    if document is None or document.kind is not Kind.PYTHON or document.path is None:
        from dsmigrate.editing.python.conversion import Converted  # noqa: PLC0415

        return _answer(Converted("error", (), None, None, (f"{uri or 'nothing'} is no open Python file",), ()))
    version = document.version
    async with working(session, f"Converting {document.name}"):
        converted = await _convert(document.text, document.path)
    answer = _answer(converted)
    wanted = len(arguments) < 2 or arguments[1] is not False
    if not converted.edits:
        if wanted and session.client.can("window.show_message") is not False:
            session.send(types.WINDOW_SHOW_MESSAGE, {"type": types.MessageType.Info.value, "message": _said(converted)})
        return answer
    if document.version != version:
        return {**answer, "status": "error", "reasons": ["the script was changed meanwhile; ask again"]}
    edit = _workspace_edit(session, document, converted)
    answer["edit"] = edit
    if wanted and session.client.can("workspace.apply_edit"):
        session.server.protocol.send_request(types.WORKSPACE_APPLY_EDIT, {"label": TITLE, "edit": edit})
    return answer


def _answer(converted: Converted) -> Data:
    """Return what a conversion comes to, without its edit."""
    path, result = converted.config_path, converted.result
    config = None if path is None else {"uri": uri_of(path), "text": converted.config_text, "isThere": path.exists()}
    report = None
    if result is not None:
        from dsmigrate.report import json  # noqa: PLC0415
        from dsmigrate.report.view import Entry, Report  # noqa: PLC0415

        report = json.document(Report((Entry(result, None if path is None else str(path)),)))["files"][0]
    return {
        "status": converted.status,
        "reasons": list(converted.reasons),
        "launch": list(converted.launch),
        "edit": None,
        "report": report,
        "after": converted.after,
        "config": config,
    }


async def _convert(text: str, path: Path) -> Converted:
    from dsmigrate.editing.python.conversion import Converted, convert  # noqa: PLC0415
    from dsmigrate.settings.errors import SettingsError  # noqa: PLC0415

    try:
        return await asyncio.get_running_loop().run_in_executor(None, convert, text, path)
    except SettingsError as error:
        return Converted("error", (), None, None, (str(error),), ())


def _said(converted: Converted) -> str:
    if converted.status == "unchanged":
        return "There is nothing to convert in this script."
    first, *more = converted.reasons or ("no reason was given",)
    also = f", and {len(more)} more" if more else ""
    return f"The script was not converted: {first}{also}"


def _workspace_edit(session: Session, document: OpenDocument, converted: Converted) -> Data:
    """Return the change of the script and of the config beside it, as rich as the client takes it."""
    can = session.client.can
    lines = document.lines
    if not can("workspace.workspace_edit.document_changes"):
        return {"changes": {document.uri: lines.edits(item.edit for item in converted.edits)}}
    annotated = can("workspace.workspace_edit.change_annotation_support") is not None
    annotations: Data = {}
    edits: list[Data] = []
    for item in converted.edits:
        made = lines.edit(item.edit)
        if annotated:
            name = f"{item.label}: {item.description}"
            annotations[name] = {"label": item.label, "description": item.description, "needsConfirmation": True}
            made["annotationId"] = name
        edits.append(made)
    changes: list[Data] = [{"textDocument": {"uri": document.uri, "version": document.version}, "edits": edits}]
    creatable = "create" in [
        getattr(kind, "value", kind) for kind in can("workspace.workspace_edit.resource_operations") or ()
    ]
    if creatable and converted.config_path is not None and not converted.config_path.exists():
        config = uri_of(converted.config_path)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        changes.append({"kind": "create", "uri": config, "options": {"ignoreIfExists": True}})
        changes.append(
            {
                "textDocument": {"uri": config, "version": None},
                "edits": [{"range": whole, "newText": converted.config_text or ""}],
            }
        )
    return {"documentChanges": changes, **({"changeAnnotations": annotations} if annotated else {})}
