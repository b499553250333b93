"""Training scripts: the offer to convert them, and the conversion as a change of the workspace to look through."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.document import LineIndex
from dsmigrate.files.paths import resolved
from dsmigrate.language_server.progress import working
from dsmigrate.language_server.recognition import Kind
from dsmigrate.language_server.uris import uri_of
from dsmigrate.language_server.wire import Lines

if TYPE_CHECKING:
    from dsmigrate.codemod.model import FileResult
    from dsmigrate.editing.python.conversion import AnnotatedEdit, Converted
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

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
    ``isThere`` already, which the edit leaves as it is. ``modules`` are the other files of the edit, each with its
    address, ``name`` within the project, ``report`` and text ``after``; one that ``isNew`` is not there yet. Nothing is
    written to the disk.
    """
    uri = str(arguments[0]) if arguments else ""
    document = session.documents.get(uri)
    if document is None or document.kind is not Kind.PYTHON or document.path is None:
        from dsmigrate.editing.python.conversion import Converted  # noqa: PLC0415

        return _answer(Converted("error", (), None, None, (f"{uri or 'nothing'} is no open Python file",), ()))
    versions = {other.uri: other.version for other in session.documents}
    async with working(session, f"Converting {document.name}"):
        converted = await _convert(session, document, document.path)
    opened = _opened(session)
    answer = _answer(converted, opened)
    wanted = len(arguments) < 2 or arguments[1] is not False
    if not converted.changes:
        if wanted and session.client.can("window.show_message") is not False:
            session.send(types.WINDOW_SHOW_MESSAGE, {"type": types.MessageType.Info.value, "message": _said(converted)})
        return answer
    beside = (opened.get(resolved(module.path)) for module in converted.modules)
    shown = [session.documents.get(uri), *(other for other in beside if other is not None)]
    if any(other is None or versions.get(other.uri) != other.version for other in shown):
        return {**answer, "status": "error", "reasons": ["the script was changed meanwhile; ask again"]}
    edit = _workspace_edit(session, document, converted)
    answer["edit"] = edit
    if wanted and session.client.can("workspace.apply_edit"):
        session.server.protocol.send_request(types.WORKSPACE_APPLY_EDIT, {"label": TITLE, "edit": edit})
    return answer


def _answer(converted: Converted, opened: Mapping[Path, OpenDocument] | None = None) -> Data:
    """Return what a conversion comes to, without its edit; ``opened`` are the documents that the editor shows."""
    path = converted.config_path
    config = None if path is None else {"uri": uri_of(path), "text": converted.config_text, "isThere": path.exists()}
    return {
        "status": converted.status,
        "reasons": list(converted.reasons),
        "launch": list(converted.launch),
        "edit": None,
        "report": None if converted.result is None else _report(converted.result, path),
        "after": converted.after,
        "config": config,
        "modules": [
            {
                "uri": _address(module.path, opened or {}),
                "name": module.result.path,
                "report": _report(module.result),
                "after": module.after,
                "isNew": module.is_new,
            }
            for module in converted.modules
        ],
    }


def _report(result: FileResult, config: Path | None = None) -> Data:
    from dsmigrate.report import json  # noqa: PLC0415
    from dsmigrate.report.view import Entry, Report  # noqa: PLC0415

    found: Data = json.document(Report((Entry(result, None if config is None else str(config)),)))["files"][0]
    return found


def _address(path: Path, opened: Mapping[Path, OpenDocument]) -> str:
    """Return the address of a file, in the words of the editor where it shows the file."""
    shown = opened.get(resolved(path))
    return uri_of(path) if shown is None else shown.uri


def _opened(session: Session) -> dict[Path, OpenDocument]:
    """Return the open scripts and modules by resolved path; a module that is open is edited as it is shown."""
    return {
        resolved(document.path): document
        for document in session.documents
        if document.kind is Kind.PYTHON and document.path is not None
    }


async def _convert(session: Session, document: OpenDocument, path: Path) -> Converted:
    from dsmigrate.editing.python.conversion import Converted, convert  # noqa: PLC0415
    from dsmigrate.settings.errors import SettingsError  # noqa: PLC0415

    texts = {place: other.text for place, other in _opened(session).items() if other is not document}
    try:
        return await session.aside.beside(functools.partial(convert, document.text, path, texts))
    except SettingsError as error:
        return Converted("error", (), None, None, (str(error),), ())


def _said(converted: Converted) -> str:
    if converted.status == "unchanged":
        return "There is nothing to convert in this script."
    first, *more = converted.reasons or ("no reason was given",)
    also = f", and {len(more)} more" if more else ""
    return f"The script was not converted: {first}{also}"


def _workspace_edit(session: Session, document: OpenDocument, converted: Converted) -> Data:
    """Return the change of the script, of its modules and of the config beside it, as rich as the client takes it."""
    can = session.client.can
    opened = _opened(session)
    creatable = can("workspace.workspace_edit.document_changes") and "create" in [
        getattr(kind, "value", kind) for kind in can("workspace.workspace_edit.resource_operations") or ()
    ]
    parts: list[tuple[str, int | None, Lines, Sequence[AnnotatedEdit]]] = []
    if converted.edits:
        parts.append((document.uri, document.version, document.lines, converted.edits))
    new = [module for module in converted.modules if module.is_new and creatable]
    for module in converted.modules:
        if module in new:
            continue
        shown = opened.get(resolved(module.path))
        lines = shown.lines if shown is not None else Lines(LineIndex(module.before), session.documents.encoding)
        version = None if shown is None else shown.version
        parts.append((_address(module.path, opened), version, lines, module.edits))
    if not can("workspace.workspace_edit.document_changes"):
        return {"changes": {uri: lines.edits(item.edit for item in items) for uri, _, lines, items in parts}}
    annotated = can("workspace.workspace_edit.change_annotation_support") is not None
    annotations: Data = {}
    changes: list[Data] = []
    for uri, version, lines, items in parts:
        edits = [_edit(item, lines, annotations if annotated else None) for item in items]
        changes.append({"textDocument": {"uri": uri, "version": version}, "edits": edits})
    for module in new:
        changes += _new_file(uri_of(module.path), module.after)
    if creatable and converted.config_path is not None and not converted.config_path.exists():
        changes += _new_file(uri_of(converted.config_path), converted.config_text or "")
    return {"documentChanges": changes, **({"changeAnnotations": annotations} if annotated else {})}


def _edit(item: AnnotatedEdit, lines: Lines, annotations: Data | None) -> Data:
    """Return an edit, and add what is said of it to the annotations of a client that shows them."""
    made = lines.edit(item.edit)
    if annotations is not None:
        name = f"{item.label}: {item.description}"
        annotations[name] = {"label": item.label, "description": item.description, "needsConfirmation": True}
        made["annotationId"] = name
    return made


def _new_file(uri: str, text: str) -> list[Data]:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    return [
        {"kind": "create", "uri": uri, "options": {"ignoreIfExists": True}},
        {"textDocument": {"uri": uri, "version": None}, "edits": [{"range": whole, "newText": text}]},
    ]
