"""What the server answers, in one table: the method, where its handler is, and what is promised to the client.

Handlers are imported when they are first needed, so that the answer to ``initialize`` waits for none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

_PACKAGE = "dsmigrate.language_server.features"


@dataclass(frozen=True, slots=True)
class Entry:
    """A method or command and its handler, as ``module:function`` below ``features``.

    The function takes the session and the parameters (a command the sequence of its arguments, which are plain data);
    ``waits`` says that it is a coroutine. One that does not wait is called beside the loop for a long document, unless
    it ``acts``: changes what the session holds.
    """

    name: str
    where: str
    options: Any = None
    waits: bool = False
    acts: bool = False

    def handler(self) -> Callable[..., Any]:
        """Return the function; the first call imports its module."""
        module, _, function = self.where.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), function)
        return found


_DIAGNOSTICS = types.DiagnosticOptions(
    inter_file_dependencies=True, workspace_diagnostics=True, identifier="dsmigrate", work_done_progress=True
)
_COMPLETION = types.CompletionOptions(
    trigger_characters=['"', ":", ",", "{", "\n"],
    resolve_provider=True,
    completion_item=types.ServerCompletionItemOptions(label_details_support=True),
)
_ACTIONS = types.CodeActionOptions(
    code_action_kinds=["quickfix", "refactor.rewrite", "source.fixAll.dsmigrate"], resolve_provider=True
)

FEATURES = (
    Entry(types.INITIALIZED, "lifecycle:initialized", waits=True),
    Entry(types.SHUTDOWN, "lifecycle:shutdown", acts=True),
    Entry(types.WORKSPACE_DID_CHANGE_CONFIGURATION, "lifecycle:configuration_changed", waits=True),
    Entry(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, "lifecycle:folders_changed", waits=True),
    Entry(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, "lifecycle:files_changed", acts=True),
    Entry("dsmigrate/viewFileText", "lifecycle:view_text", acts=True),
    Entry(types.TEXT_DOCUMENT_DID_OPEN, "diagnostics:opened", acts=True),
    Entry(types.TEXT_DOCUMENT_DID_CHANGE, "diagnostics:changed", acts=True),
    Entry(types.TEXT_DOCUMENT_DID_CLOSE, "diagnostics:closed", acts=True),
    Entry(types.TEXT_DOCUMENT_DIAGNOSTIC, "diagnostics:pull", _DIAGNOSTICS),
    Entry(types.WORKSPACE_DIAGNOSTIC, "workspace:pull_all", waits=True),
    Entry(types.TEXT_DOCUMENT_HOVER, "reading:hover"),
    Entry(types.TEXT_DOCUMENT_INLAY_HINT, "reading:inlay_hints"),
    Entry(types.TEXT_DOCUMENT_CODE_LENS, "reading:code_lenses"),
    Entry(types.TEXT_DOCUMENT_COMPLETION, "completion:completion", _COMPLETION),
    Entry(types.COMPLETION_ITEM_RESOLVE, "completion:resolve"),
    Entry(types.TEXT_DOCUMENT_CODE_ACTION, "actions:code_actions", _ACTIONS),
    Entry(types.CODE_ACTION_RESOLVE, "actions:resolve"),
    Entry(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, "structure:document_symbols"),
    Entry(types.TEXT_DOCUMENT_FOLDING_RANGE, "structure:folding_ranges"),
    Entry(types.TEXT_DOCUMENT_SELECTION_RANGE, "structure:selection_ranges"),
    Entry(types.TEXT_DOCUMENT_DOCUMENT_LINK, "structure:document_links"),
    Entry(types.TEXT_DOCUMENT_DEFINITION, "structure:definition"),
    Entry(types.TEXT_DOCUMENT_REFERENCES, "structure:references"),
    Entry(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, "structure:highlights"),
)

COMMANDS = (
    Entry("dsmigrate.explain", "commands:explain"),
    Entry("dsmigrate.status", "commands:status"),
    Entry("dsmigrate.set", "commands:change", acts=True),
    Entry("dsmigrate.upgrade", "commands:upgrade"),
    Entry("dsmigrate.choices", "choosing:choices"),
    Entry("dsmigrate.starters", "choosing:starters"),
    Entry("dsmigrate.subjects", "choosing:subjects"),
    Entry("dsmigrate.diffWithHead", "diffing:with_head", waits=True),
    Entry("dsmigrate.diff", "diffing:compare", waits=True),
    Entry("dsmigrate.convertScript", "scripts:convert_script", waits=True),
)
