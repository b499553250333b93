"""Answers are as rich as the client can use, and no richer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from tests.language_server.talk import Opened, session, write

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXAMPLE = Path(__file__).parents[2] / "examples"
OLD = """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2, "cpu_offload": true, "stage3_max_live_parameters": 1}
}
"""


async def test_hover_and_documentation_are_marked_up_for_clients_that_show_it(
    client: LanguageClient, workspace: Path
) -> None:
    can = session(client).can
    config = write(client, workspace, "ds_hover.json", '{"zero_optimization": {"stage": 2}, "gradient_cl|"}')
    hover = await client.text_document_hover_async(types.HoverParams(config.id, config.at('"stage"')))
    assert hover is not None
    assert isinstance(hover.contents, types.MarkupContent)
    marked = types.MarkupKind.Markdown in (can("text_document.hover.content_format") or ())
    assert hover.contents.kind is (types.MarkupKind.Markdown if marked else types.MarkupKind.PlainText)
    assert ("`" in hover.contents.value or "**" in hover.contents.value) is marked
    config.close()


async def test_completions_are_snippets_with_details_where_the_client_has_them(
    client: LanguageClient, workspace: Path
) -> None:
    can = session(client).can
    config = write(client, workspace, "ds_items.json", '{\n  "train_batch_size": 8,\n  |\n}\n')
    listed = await client.text_document_completion_async(types.CompletionParams(config.id, config.cursor))
    assert isinstance(listed, types.CompletionList)
    item = "text_document.completion.completion_item"
    snippets = [entry for entry in listed.items if entry.insert_text_format is types.InsertTextFormat.Snippet]
    assert bool(snippets) is bool(can(f"{item}.snippet_support"))
    detailed = [entry for entry in listed.items if entry.label_details is not None]
    assert bool(detailed) is bool(can(f"{item}.label_details_support"))
    assert all(entry.documentation is None for entry in listed.items)  # comes with completionItem/resolve
    config.close()


async def test_findings_carry_tags_and_other_places(client: LanguageClient, workspace: Path) -> None:
    known = session(client)
    config = write(client, workspace, "ds_tags.json", OLD)
    found = {config.cut(item.range): item for item in await config.diagnostics()}
    support = "text_document.diagnostic" if known.pulls else "text_document.publish_diagnostics"
    inert = found['"stage3_max_live_parameters": 1']
    tagged = known.can(f"{support}.tag_support") is not None
    assert list(inert.tags or ()) == ([types.DiagnosticTag.Unnecessary] if tagged else [])
    deprecated = next(item for place, item in found.items() if place.startswith('"cpu_offload"'))
    assert list(deprecated.tags or ()) == ([types.DiagnosticTag.Deprecated] if tagged else [])
    linked = known.can(f"{support}.code_description_support")
    assert (inert.code_description is not None) is (linked is not False)
    config.close()


async def test_edits_are_made_when_they_are_chosen_and_tied_to_the_version(
    client: LanguageClient, workspace: Path
) -> None:
    can = session(client).can
    config = write(client, workspace, "ds_edits.json", OLD)
    context = types.CodeActionContext([], only=[types.CodeActionKind.QuickFix])
    span = config.span('"cpu_offload"')
    listed = await client.text_document_code_action_async(types.CodeActionParams(config.id, span, context))
    first = next(item for item in listed or () if isinstance(item, types.CodeAction))
    lazy = "edit" in (can("text_document.code_action.resolve_support.properties") or ())
    assert (first.edit is None) is lazy
    whole = await client.code_action_resolve_async(first) if lazy else first
    assert whole.edit is not None
    versioned = bool(can("workspace.workspace_edit.document_changes"))
    assert (whole.edit.document_changes is not None) is versioned
    for change in whole.edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == config.version
    config.close()


async def test_a_conversion_gives_its_reasons_as_annotations(client: LanguageClient, workspace: Path) -> None:
    can = session(client).can
    script = min(EXAMPLE.glob("*.py")).read_text(encoding="utf-8")
    opened = write(client, workspace, "train_annotated.py", script, "python")
    asked = types.ExecuteCommandParams("dsmigrate.convertScript", arguments=[opened.uri, False])
    answer: Any = await client.workspace_execute_command_async(asked)
    edit = json.loads(json.dumps(answer["edit"] if isinstance(answer, dict) else _plain(answer.edit)))
    annotated = can("workspace.workspace_edit.change_annotation_support") is not None
    assert ("changeAnnotations" in edit) is annotated
    if annotated:
        used = {
            item["annotationId"]
            for change in edit["documentChanges"]
            for item in change.get("edits", ())
            if "annotationId" in item
        }
        assert used == set(edit["changeAnnotations"])
        assert all(note["needsConfirmation"] and note["description"] for note in edit["changeAnnotations"].values())
    creates = [change for change in edit.get("documentChanges", ()) if change.get("kind") == "create"]
    operations = can("workspace.workspace_edit.resource_operations") or ()
    versioned = bool(can("workspace.workspace_edit.document_changes"))
    assert bool(creates) is (versioned and types.ResourceOperationKind.Create in operations)
    opened.close()


@pytest.mark.parametrize("by_link", [False, True])
async def test_a_conversion_edits_the_modules_as_they_are_shown(
    client: LanguageClient, tmp_path: Path, *, by_link: bool
) -> None:
    can = session(client).can
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "pyproject.toml").touch()
    shutil.copytree(EXAMPLE / "mae_engine", tmp_path / "there" / "mae")
    if by_link:
        (tmp_path / "here").symlink_to(tmp_path / "there")
    folder = tmp_path / ("here" if by_link else "there") / "mae"
    module = folder / "engine_pretrain.py"
    shown = f"# not saved yet\n{module.read_text(encoding='utf-8')}"
    loop = Opened(client, module.as_uri(), shown, "python")
    script = folder / "main_pretrain.py"
    opened = Opened(client, script.as_uri(), script.read_text(encoding="utf-8"), "python")
    asked = types.ExecuteCommandParams("dsmigrate.convertScript", arguments=[opened.uri, False])
    answer: Any = _plain(await client.workspace_execute_command_async(asked))
    after = {opened.uri: answer["after"], **{item["uri"]: item["after"] for item in answer["modules"]}}
    assert {"mae/engine_pretrain.py", "mae/util/misc.py"} <= {item["name"] for item in answer["modules"]}
    assert after[loop.uri].startswith("# not saved yet\n")
    made = (folder / "ds_compat.py").as_uri()
    assert [item["uri"] for item in answer["modules"] if not item["report"]["changes"]] == [made]
    if can("workspace.workspace_edit.document_changes"):
        changes = [change for change in answer["edit"]["documentChanges"] if "edits" in change]
        edits = {change["textDocument"]["uri"]: change["edits"] for change in changes}
        versions = {change["textDocument"]["uri"]: change["textDocument"]["version"] for change in changes}
        assert versions[opened.uri] == opened.version
        assert versions[loop.uri] == loop.version
        assert versions[(folder / "util" / "misc.py").as_uri()] is None
    else:
        edits = answer["edit"]["changes"]
    for uri, text in after.items():
        assert edits[uri], uri
        if uri in {opened.uri, loop.uri}:
            document = opened if uri == opened.uri else loop
            assert _applied(document, edits[uri]) == text
    opened.close()
    loop.close()


def _applied(document: Opened, edits: list[Any]) -> str:
    """The text of a document with edits, whose ranges are all of the text before."""
    text = document.text
    for edit in sorted(edits, key=lambda edit: -edit["range"]["start"]["line"]):
        start, end = (document.offset_of(types.Position(**edit["range"][side])) for side in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def _plain(answer: Any) -> Any:
    if hasattr(answer, "_asdict"):
        return {name: _plain(value) for name, value in answer._asdict().items()}
    if isinstance(answer, list | tuple):
        return [_plain(value) for value in answer]
    return answer
