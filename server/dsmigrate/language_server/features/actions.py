"""Code actions: listed with titles alone, and worked out when one is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from dsmigrate.editing import actions as acting
from dsmigrate.editing.actions import Action
from dsmigrate.editing.actions.model import QUICK_FIX
from dsmigrate.language_server import diagnosing
from dsmigrate.language_server.asking import Asked, asked_at
from dsmigrate.language_server.features import scripts
from dsmigrate.language_server.features.reading import configs_of
from dsmigrate.language_server.yaml import yaml_of

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_ACTION = "text_document.code_action"
_OF_FORMS = "CV"
"""The family of what forms say for themselves."""


def code_actions(session: Session, params: types.CodeActionParams) -> list[Data] | None:
    """Answer what can be done at a range; clients that cannot ask again get the edits at once."""
    document = session.documents.get(params.text_document.uri)
    if document is None:
        return None
    offered = scripts.actions(document, *document.lines.offsets(params.range)) if _takes(params, scripts.KIND) else []
    found = asked_at(session, params.text_document.uri, params.range.start)
    if found is None:
        return [*offered, *_of_yaml(session, document, params)] or None
    asked, _ = found
    start, end = asked.lines.offsets(params.range)
    only = params.context.only
    kinds = None if only is None else frozenset(str(getattr(kind, "value", kind)) for kind in only)
    lazy = "edit" in (session.client.can(f"{_ACTION}.resolve_support.properties") or ())
    diagnostics = {_key(item): item for item in diagnosing.diagnostics(session, asked.document) or ()}
    made = offered
    for action in acting.actions(asked.view, start, end, kinds=kinds):
        if action.disabled and not session.client.can(f"{_ACTION}.disabled_support"):
            continue
        entry = _listed(asked, action, diagnostics)
        if not lazy and not action.disabled:
            entry = _with_edit(session, asked, entry)
            if "edit" not in entry:
                continue
        made.append(entry)
    return made


def _of_yaml(session: Session, document: OpenDocument, params: types.CodeActionParams) -> Iterator[Data]:
    """Yield the fixes of what a YAML file says for itself; those of rules would edit a config that is not there."""
    said = yaml_of(session, document) if _takes(params, QUICK_FIX) else None
    start, end = document.lines.offsets(params.range)
    for finding in () if said is None else said.findings:
        if not (finding.code.startswith(_OF_FORMS) and finding.start <= end and start <= finding.end):
            continue
        for fix in finding.fixes:
            mended = diagnosing.diagnostic(session, document.uri, document.lines, finding)
            edit = session.workspace_edit(document, document.lines.edits(fix.edits))
            made: Data = {"title": _plain(fix.title), "kind": QUICK_FIX, "diagnostics": [mended], "edit": edit}
            yield {**made, "isPreferred": True} if fix.safe else made


def _takes(params: types.CodeActionParams, kind: str) -> bool:
    """Return whether the client wants actions of a kind: of that very kind or of one above it."""
    only = params.context.only
    wanted = [str(getattr(entry, "value", entry)) for entry in only or ()]
    return only is None or any(kind == entry or kind.startswith(f"{entry}.") for entry in wanted)


def resolve(session: Session, params: types.CodeAction) -> Data:
    """Answer an action with its edit, made for the text as it is now."""
    made: Data = session.server.protocol.plain(params)
    data = params.data
    document = session.documents.get(str(data.get("uri"))) if isinstance(data, dict) else None
    if document is None or not isinstance(data, dict):
        return made
    for asked in configs_of(session, document):
        root = asked.view.document.root
        if not asked.is_python or (root is not None and root.start == data.get("at")):
            return _with_edit(session, asked, made, tell=True)
    return made


def _listed(asked: Asked, action: Action, diagnostics: dict[tuple[Any, ...], Data]) -> Data:
    root = asked.view.document.root
    made: Data = {
        "title": _plain(action.title),
        "kind": action.kind,
        "data": {"uri": asked.document.uri, "at": root.start if root is not None else 0, "action": action.data},
    }
    if action.preferred:
        made["isPreferred"] = True
    keys = [(mended.code, *_place(asked.lines.range(mended.start, mended.end))) for mended in action.codes]
    mended = [diagnostics[key] for key in keys if key in diagnostics]
    if mended:
        made["diagnostics"] = mended
    if action.disabled:
        made["disabled"] = {"reason": _plain(action.disabled)}
    return made


def _plain(text: str) -> str:
    """Return a text for a place where editors show no Markdown: menus, and messages in a corner."""
    return text.replace("`", "")


def _with_edit(session: Session, asked: Asked, made: Data, *, tell: bool = False) -> Data:
    """Return an action with its edit; as it is, where there is nothing to do any more.

    With ``tell`` the person is told what the action leaves to do, as somebody has chosen it.
    """
    data: Any = made.get("data")
    action = data.get("action") if isinstance(data, dict) else None
    if not isinstance(action, list | tuple):
        return made
    outcome = acting.outcome(asked.view, tuple(action))
    if tell and outcome.left:
        message = {"type": types.MessageType.Info.value, "message": f"Left for you: {_plain(' '.join(outcome.left))}"}
        session.send(types.WINDOW_SHOW_MESSAGE, message)
    if not outcome.edits:
        return made
    return {**made, "edit": session.workspace_edit(asked.document, asked.edits(outcome.edits))}


def _key(diagnostic: Data) -> tuple[Any, ...]:
    """Return what tells a diagnostic from others; one about the document as a whole has no code."""
    return (diagnostic.get("code"), *_place(diagnostic["range"]))


def _place(span: Data) -> tuple[int, ...]:
    return tuple(span[side][unit] for side in ("start", "end") for unit in ("line", "character"))
