"""Diagnostics: sent to clients that wait, answered to those that ask, and about our documents alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from dsmigrate.checking.job import check_bytes
from dsmigrate.settings.check import CheckSettings
from tests.language_server.talk import Opened, session, write

pytestmark = pytest.mark.asyncio(loop_scope="module")
YAML = """compute_environment: LOCAL_MACHINE
deepspeed_config:
  zero_stage: 3
  gradient_accumulation_steps: 4
  offload_optimizer_device: nvme
  zero_stagee: 2
distributed_type: DEEPSPEED
num_processes: 8
"""
BROKEN = '{\n  "train_batch_size": 8,\n  "bp16": {"enabled": true},\n  "zero_optimization": {"stage": 5}\n}\n'


async def test_a_config_is_diagnosed_and_again_after_each_change(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", BROKEN)
    found = {item.code: item for item in await config.diagnostics()}
    unknown = next(item for code, item in found.items() if "bp16" in item.message and code)
    assert config.cut(unknown.range) == '"bp16"'
    assert unknown.source == "dsmigrate"
    assert unknown.code_description is None or unknown.code_description.href.endswith(f"{unknown.code}.md")
    stage = next(item for item in found.values() if item.severity == types.DiagnosticSeverity.Error)
    assert config.cut(stage.range) == "5"
    config.change("5", "2")
    errors = [item for item in await config.diagnostics() if item.severity == types.DiagnosticSeverity.Error]
    assert errors == []
    config.close()
    await config.none_left()


async def test_other_json_is_left_alone(client: LanguageClient, workspace: Path) -> None:
    package = write(client, workspace, "package.json", '{"name": "x", "version": 1,}')
    config = write(client, workspace, "zero2.json", '{"train_batch_size": 8, "stage": 2}')
    await config.diagnostics()
    assert package.uri not in client.diagnostics
    if session(client).pulls:
        assert await package.diagnostics() == []
    package.close()
    config.close()


async def test_a_file_that_becomes_a_config_is_picked_up(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "training.json", '{"a": 1}')
    config.change('"a": 1', '"zero_optimization": {"stage": 7}')
    found = await config.diagnostics()
    assert "7" in [config.cut(item.range) for item in found]
    config.close()


async def test_places_are_counted_in_what_was_agreed_on(client: LanguageClient, workspace: Path) -> None:
    text = '{"train_batch_size": 8, "_note": "😀é", "zero_optimization": {"stage": 5}}'
    config = write(client, workspace, "ds_emoji.json", text)
    assert "5" in [config.cut(item.range) for item in await config.diagnostics()]
    config.change("😀é", "é😀😀")
    assert "5" in [config.cut(item.range) for item in await config.diagnostics()]
    config.close()


async def test_configs_in_scripts_are_diagnosed_at_their_place(client: LanguageClient, workspace: Path) -> None:
    script = 'import deepspeed\nds_config = {\n    "train_batch_size": n,\n    "zero_optimization": {"stage": 4},\n}\n'
    opened = write(client, workspace, "train.py", script, "python")
    assert [opened.cut(item.range) for item in await opened.diagnostics() if item.severity == 1] == ["4"]
    opened.change("4", "2")
    assert not [item for item in await opened.diagnostics() if item.severity == 1]
    opened.close()


async def test_clients_that_ask_get_reports_with_ids(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_pull.json", BROKEN)
    report = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(config.id))
    assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
    assert report.result_id
    again = await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(config.id, previous_result_id=report.result_id)
    )
    assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
    config.change("5", "1")
    other = await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(config.id, previous_result_id=report.result_id)
    )
    assert isinstance(other, types.RelatedFullDocumentDiagnosticReport)
    config.close()


async def test_yaml_of_the_workspace_is_read_as_yaml(client: LanguageClient, workspace: Path) -> None:
    file = workspace / "zero3.yaml"
    file.write_text(YAML, encoding="utf-8")
    changed = types.DidChangeWatchedFilesParams([types.FileEvent(file.as_uri(), types.FileChangeType.Created)])
    client.workspace_did_change_watched_files(changed)
    report = await client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams([]))
    mine = next(item for item in report.items if item.uri == file.as_uri())
    assert isinstance(mine, types.WorkspaceFullDocumentDiagnosticReport)
    found = [(item.code, item.range.start.line) for item in mine.items]
    assert ("CV101", 5) in found
    assert ("DS520", 4) in found
    checked = check_bytes(str(file), YAML.encode(), file.parent, CheckSettings())
    assert sorted(str(code) for code, _ in found) == sorted(finding.code for finding in checked.findings)
    opened = Opened(client, file.as_uri(), YAML, "yaml")
    same = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(opened.id))
    assert isinstance(same, types.RelatedFullDocumentDiagnosticReport)
    assert sorted((item.code, item.range.start.line) for item in same.items) == sorted(found)
    hover = await client.text_document_hover_async(types.HoverParams(opened.id, opened.at("zero_stage")))
    assert hover is not None
    assert hover.range is not None
    assert opened.cut(hover.range) == "zero_stage"
    assert "`zero_optimization.stage`" in str(hover.contents)
    offered = await client.text_document_code_action_async(
        types.CodeActionParams(opened.id, opened.span("zero_stagee"), types.CodeActionContext([]))
    )
    titles = [action.title for action in offered or () if isinstance(action, types.CodeAction)]
    assert titles == []  # the key that was meant is there already
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(opened.id))
    assert [lens.command.title for lens in lenses or () if lens.command] == ["ZeRO-3 · nvme"]
    opened.close()
    other = Opened(client, (workspace / "ci.yaml").as_uri(), "on: push\njobs:\n  zero_stage: 3\n", "yaml")
    none = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(other.id))
    assert isinstance(none, types.RelatedFullDocumentDiagnosticReport)
    assert list(none.items) == []
    other.close()
    typo = "deepspeed_config:\n  zero_stage: 3\n  gradient_cliping: 1.0\ndistributed_type: DEEPSPEED\n"
    mistaken = Opened(client, (workspace / "typo.yaml").as_uri(), typo, "yaml")
    (fix,) = (
        await client.text_document_code_action_async(
            types.CodeActionParams(mistaken.id, mistaken.span("gradient_cliping"), types.CodeActionContext([]))
        )
        or ()
    )
    assert isinstance(fix, types.CodeAction)
    assert (fix.title, fix.edit is None) == ("Write gradient_clipping", False)
    completed = await client.text_document_completion_async(
        types.CompletionParams(mistaken.id, mistaken.span("gradient_cliping").start)
    )
    assert isinstance(completed, types.CompletionList)
    labels = [item.label for item in completed.items]
    assert "gradient_clipping" in labels
    assert "zero_stage" not in labels
    mistaken.close()
    torn = Opened(client, (workspace / "torn.yaml").as_uri(), "deepspeed_config: {zero_stage: 3\n", "yaml")
    fault = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(torn.id))
    assert isinstance(fault, types.RelatedFullDocumentDiagnosticReport)
    assert [item.severity for item in fault.items] == [types.DiagnosticSeverity.Error]
    torn.close()
    file.unlink()
    client.workspace_did_change_watched_files(changed)


async def test_the_workspace_is_diagnosed_from_the_disk(client: LanguageClient, workspace: Path) -> None:
    (workspace / "nested").mkdir(exist_ok=True)
    file = workspace / "nested" / "ds_config.json"
    file.write_text(BROKEN, encoding="utf-8")
    report = await client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams([]))
    found = {item.uri: item for item in report.items}
    mine = found[file.as_uri()]
    assert isinstance(mine, types.WorkspaceFullDocumentDiagnosticReport)
    assert len(mine.items) >= 2
    before = [types.PreviousResultId(uri=file.as_uri(), value=str(mine.result_id))]
    again = await client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(before))
    assert {item.uri: item.kind for item in again.items}[file.as_uri()] == "unchanged"
    file.unlink()
    gone = await client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams(before))
    left = {item.uri: item for item in gone.items}[file.as_uri()]
    assert isinstance(left, types.WorkspaceFullDocumentDiagnosticReport)
    assert list(left.items) == []
