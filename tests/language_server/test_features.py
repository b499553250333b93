"""Every feature through the protocol, for what VS Code, Neovim and Emacs can do."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from tests.language_server.talk import Opened, session, write

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONFIG = """{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "zero_optimization": {
    "stage": 2,
    "overlap_com": true,
    "reduce_bucket_size": 5e8,
    "stage3_prefetch_bucket_size": 5e7
  },
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}
}
"""


def applied(opened: Opened, edit: types.WorkspaceEdit | None) -> str:
    """Return the text of a document after a change of the workspace."""
    assert edit is not None
    edits: list[Any] = []
    for change in edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.uri == opened.uri
        edits += change.edits
    edits += (edit.changes or {}).get(opened.uri, [])
    return with_edits(opened, edits)


def with_edits(opened: Opened, edits: list[Any]) -> str:
    """Return the text of a document with edits made."""
    text = opened.text
    for item in sorted(edits, key=lambda item: (item.range.start.line, item.range.start.character), reverse=True):
        start, end = opened.offset_of(item.range.start), opened.offset_of(item.range.end)
        text = text[:start] + item.new_text + text[end:]
    return text


async def test_hover_says_what_a_key_does_in_this_file(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)
    found = await client.text_document_hover_async(types.HoverParams(config.id, config.at("stage3_pre")))
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    assert found.range is not None
    assert "stage3_prefetch_bucket_size" in config.cut(found.range)
    assert "gathers ahead" in found.contents.value
    shows_diagnostics = session(client).is_vs_code
    assert shows_diagnostics or "stage is 2" in found.contents.value
    nothing = await client.text_document_hover_async(types.HoverParams(config.id, types.Position(10, 1)))
    assert nothing is None
    config.close()


async def test_completion_offers_what_is_missing_and_documents_it(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", '{\n  "train_batch_size": 8,\n  "gradient_cl|"\n}\n')
    listed = await client.text_document_completion_async(types.CompletionParams(config.id, config.cursor))
    assert isinstance(listed, types.CompletionList)
    labels = [item.label for item in listed.items]
    assert "gradient_clipping" in labels
    assert "train_batch_size" not in labels
    item = next(item for item in listed.items if item.label == "gradient_clipping")
    full = await client.completion_item_resolve_async(item)
    said = full.documentation
    assert "norm" in (said.value if isinstance(said, types.MarkupContent) else str(said))
    assert full.label == item.label
    assert isinstance(item.text_edit, types.TextEdit)
    text = with_edits(config, [item.text_edit, *(item.additional_text_edits or ())])
    if item.insert_text_format is not types.InsertTextFormat.Snippet:
        assert json.loads(text)["gradient_clipping"] is not None
    else:
        assert '"gradient_clipping": ${1' in text
    config.close()


async def test_a_fix_is_listed_resolved_and_mends_the_file(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)
    span = config.span('"overlap_com"')
    listed = await client.text_document_code_action_async(
        types.CodeActionParams(config.id, span, types.CodeActionContext([]))
    )
    actions = [item for item in listed or () if isinstance(item, types.CodeAction)]
    assert all("`" not in item.title for item in actions)  # menus show no Markdown
    rename = next(item for item in actions if "overlap_comm" in item.title)
    assert rename.kind == types.CodeActionKind.QuickFix
    assert rename.diagnostics is not None
    assert [config.cut(item.range) for item in rename.diagnostics] == ['"overlap_com"']
    whole = rename if rename.edit else await client.code_action_resolve_async(rename)
    assert applied(config, whole.edit) == CONFIG.replace('"overlap_com"', '"overlap_comm"')
    only = types.CodeActionContext([], only=[types.CodeActionKind.RefactorRewrite])
    rewritings = await client.text_document_code_action_async(types.CodeActionParams(config.id, span, only))
    assert {
        str(getattr(item.kind, "value", item.kind)) for item in rewritings or () if isinstance(item, types.CodeAction)
    } == {"refactor.rewrite"}
    config.close()


async def test_hints_and_lens_sum_the_file_up(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)
    span = types.Range(types.Position(0, 0), types.Position(11, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(config.id, span))
    labels = [str(hint.label) for hint in hints or ()]
    assert any("GiB" in label for label in labels), labels
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(config.id))
    titles = [lens.command.title for lens in lenses or () if lens.command is not None]
    assert any(title.startswith("ZeRO-2") and "4 × 8" in title for title in titles), titles
    config.close()


async def test_the_shape_of_a_config(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(config.id))
    assert next(symbol.name for symbol in symbols or ()) == "train_micro_batch_size_per_gpu"
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(config.id))
    assert (3, 7) in [(fold.start_line, fold.end_line) for fold in folds or ()]
    chains = await client.text_document_selection_range_async(
        types.SelectionRangeParams(config.id, [config.at("AdamW")])
    )
    assert chains is not None
    assert config.cut(chains[0].range) == "AdamW"
    parent = chains[0].parent
    assert parent is not None
    assert config.cut(parent.range) == '"AdamW"'
    found = await client.text_document_definition_async(types.DefinitionParams(config.id, config.at("stage3_pre")))
    assert isinstance(found, list | tuple)
    assert next(config.cut(item.range) for item in found if isinstance(item, types.Location)) == '"stage": 2'
    params = types.ReferenceParams(types.ReferenceContext(include_declaration=False), config.id, config.at('"stage"'))
    others = await client.text_document_references_async(params)
    assert config.at("stage3_pre").line in [item.range.start.line for item in others or ()]
    links = await client.text_document_document_link_async(types.DocumentLinkParams(config.id))
    assert [config.cut(link.range) for link in links or ()] == ["AdamW"]
    config.close()


async def test_release_and_consumer_change_without_a_restart(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)

    async def command(name: str, *arguments: Any) -> Any:
        return await client.workspace_execute_command_async(types.ExecuteCommandParams(name, arguments=list(arguments)))

    before = plain(await command("dsmigrate.status", config.uri))
    assert before["consumer"] == "deepspeed"
    assert before["stage"] == 2
    await command("dsmigrate.set", "deepspeedVersion", "0.16.4")
    await command("dsmigrate.set", "worldSize", 16)
    after = plain(await command("dsmigrate.status", config.uri))
    assert after["deepspeedVersion"] == "0.16.4"
    assert after["worldSize"] == 16
    assert "512" in after["summary"]
    with pytest.raises(Exception, match="not a DeepSpeed release"):
        await command("dsmigrate.set", "deepspeed-version", "0.1.2")
    with pytest.raises(Exception, match="cannot be changed here"):
        await command("dsmigrate.set", "select", "DS1")
    await command("dsmigrate.set", "worldSize", None)
    assert plain(await command("dsmigrate.set", "deepspeed-version", None)) == {}
    said = plain(await command("dsmigrate.explain", "DS101"))
    assert "DS101" in said["markdown"]
    assert "near" in plain(await command("dsmigrate.explain", "stge"))["error"]
    config.close()


async def test_a_config_in_a_script_is_edited_as_python(client: LanguageClient, workspace: Path) -> None:
    script = (
        "import deepspeed\n"
        'ds_config = {"train_batch_size": n, "fp16": {"enabled": True, "|"}}\n'
        "deepspeed.initialize(model=model, config=ds_config)\n"
    )
    opened = write(client, workspace, "train.py", script, "python")
    listed = await client.text_document_completion_async(types.CompletionParams(opened.id, opened.cursor))
    assert isinstance(listed, types.CompletionList)
    assert "loss_scale" in [item.label for item in listed.items]
    hover = await client.text_document_hover_async(types.HoverParams(opened.id, opened.at("fp16")))
    assert hover is not None
    assert await client.text_document_hover_async(types.HoverParams(opened.id, opened.at("import"))) is None
    opened.close()


async def test_a_script_is_offered_its_conversion(client: LanguageClient, workspace: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "ddp_basic.py"
    source = next(iter(sorted(example.parent.glob("*.py")))) if not example.exists() else example
    opened = write(client, workspace, "train_ddp.py", source.read_text(encoding="utf-8"), "python")
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(opened.id))
    command = next(lens.command for lens in lenses or () if lens.command is not None)
    assert command.title == "Convert to DeepSpeed"
    answer = plain(
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, arguments=[*(command.arguments or ()), False])
        )
    )
    assert answer["status"] in {"converted", "converted_with_todos"}, answer
    assert answer["launch"] == answer["report"]["launch_commands"]
    assert all(command.endswith(" train_ddp.py") for command in answer["launch"])
    assert answer["report"]["status"] == answer["status"]
    assert {change["kind"] for change in answer["report"]["changes"]} & {"converted"}
    assert "deepspeed.initialize" in answer["after"]
    assert answer["config"]["uri"] == (workspace / "ds_config.json").as_uri()
    assert answer["config"]["isThere"] is False
    assert json.loads(answer["config"]["text"]) == answer["report"]["config"]
    changed = json.dumps(answer["edit"])
    assert "deepspeed.initialize" in changed
    span = opened.span("DistributedDataParallel(") if "DistributedDataParallel(" in opened.text else opened.span("DDP(")
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(opened.id, span, types.CodeActionContext([]))
    )
    assert "Convert to DeepSpeed" in [item.title for item in actions or ()]
    refused = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command.command, arguments=["file:///nowhere.py"])
    )
    assert plain(refused)["status"] == "error"
    opened.close()


def plain(answer: Any) -> Any:
    """Return what a command answered as plain data, whatever pygls made of it."""
    if hasattr(answer, "_asdict"):
        return {name: plain(value) for name, value in answer._asdict().items()}
    if isinstance(answer, list | tuple):
        return [plain(value) for value in answer]
    return answer


def committed(folder: Path) -> Path:
    """Return a config that is committed in a repository of its own."""
    folder.mkdir(exist_ok=True)
    file = folder / "ds_config.json"
    file.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n', encoding="utf-8")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    return file


async def to_compare(client: LanguageClient, opened: Opened, tries: int = 500) -> types.Command | None:
    """Return the offer to compare with the last commit, which comes when git has answered."""
    for _ in range(tries):
        lenses = await client.text_document_code_lens_async(types.CodeLensParams(opened.id))
        commands = [lens.command for lens in lenses or () if lens.command is not None]
        found = [command for command in commands if command.title == "Compare with HEAD"]
        if found:
            return found[0]
        await asyncio.sleep(0.01)
    return None


async def test_a_change_is_explained_beside_the_last_commit(client: LanguageClient, workspace: Path) -> None:
    file = committed(workspace / "repository")
    text = '{"zero_optimization": {"stage": 2}, "train_batch_size": 16}\n'
    opened = Opened(client, file.as_uri(), text, "json")
    compare = await to_compare(client, opened)
    assert compare is not None
    answer = plain(
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams(compare.command, arguments=list(compare.arguments or ()))
        )
    )
    assert "8" in answer["markdown"]
    assert "16" in answer["markdown"]
    assert answer["severity"] in {"breaking", "warning"}
    assert answer["report"]["summary"]["worst"] == answer["severity"]
    assert answer["texts"] == {"old": file.read_text(encoding="utf-8"), "new": text}
    assert answer["memory"] == {"old": {}, "new": {}}
    unknown = plain(
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams("dsmigrate.diffWithHead", arguments=[opened.uri, "nothing-of-that-name"])
        )
    )
    assert "nothing-of-that-name" in unknown["error"]
    opened.close()
    for name, shown in ((file.name, file.read_text(encoding="utf-8")), ("ds_new.json", text)):
        same = Opened(client, (file.parent / name).as_uri(), shown, "json")
        assert await to_compare(client, same, tries=20) is None, "nothing to compare"
        same.close()


async def ask(client: LanguageClient, command: str, *arguments: Any) -> Any:
    """Return what a command answers, as plain data."""
    return plain(
        await client.workspace_execute_command_async(types.ExecuteCommandParams(command, arguments=list(arguments)))
    )


async def test_a_config_is_compared_with_a_text_and_its_memory_is_told(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}')
    await ask(client, "dsmigrate.set", "parameters", 7_000_000_000)
    await ask(client, "dsmigrate.set", "worldSize", 8)
    clipboard = {"name": "clipboard", "text": '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}'}
    answer = await ask(client, "dsmigrate.diff", clipboard, config.uri)
    assert answer["consumer"] == "plain DeepSpeed"
    assert answer["report"]["old"]["path"] == "clipboard"
    assert answer["texts"]["old"] == clipboard["text"]
    assert sum(answer["memory"]["old"].values()) > sum(answer["memory"]["new"].values()) > 0
    assert [side["path"] for side in (answer["report"]["old"], answer["report"]["new"])] == [
        "clipboard",
        "ds_config.json",
    ]
    for name in ("parameters", "worldSize"):
        await ask(client, "dsmigrate.set", name, None)
    unreadable = await ask(client, "dsmigrate.diff", {"name": "clipboard", "text": "# nothing"}, config.uri)
    assert unreadable["error"].startswith("clipboard: ")
    with pytest.raises(Exception, match="argument 1 has no name and text"):
        await ask(client, "dsmigrate.diff", {"name": "clipboard"}, config.uri)
    config.close()


async def test_a_config_is_taken_to_the_newest_release(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}')
    answer = await ask(client, "dsmigrate.upgrade", config.uri, "0.16.4")
    assert (answer["from"], answer["to"]) == ("0.16.4", (await ask(client, "dsmigrate.choices"))["releases"][0])
    assert json.loads(answer["after"])["gradient_clipping"] == 0.0
    assert len(answer["done"]) >= 1
    assert len(answer["edits"]) >= 1
    same = await ask(client, "dsmigrate.upgrade", config.uri, answer["to"])
    assert (same["edits"], same["done"], same["after"]) == ([], [], config.text)
    with pytest.raises(Exception, match="older than"):
        await ask(client, "dsmigrate.upgrade", config.uri, "0.1.0")
    assert await ask(client, "dsmigrate.upgrade", "file:///nowhere.json") is None
    config.close()


async def test_what_there_is_to_choose_from(client: LanguageClient, workspace: Path) -> None:
    choices = await ask(client, "dsmigrate.choices")
    assert choices["releases"][-1] == "0.9.0"
    assert {"name": "transformers", "title": "Transformers Trainer"} in choices["consumers"]
    starters = await ask(client, "dsmigrate.starters", workspace.as_uri())
    assert len({starter["label"] for starter in starters}) == len(starters) > 3
    assert all(starter["summary"] and "${1:" in starter["snippet"] for starter in starters)
    assert {starter["consumer"] for starter in starters} >= {None, "Transformers Trainer"}
    subjects = await ask(client, "dsmigrate.subjects", "")
    by_word = {subject["word"]: subject for subject in subjects}
    assert len(by_word) == len(subjects)
    assert by_word["zero_optimization.stage"]["kind"] == "key"
    assert {by_word[word]["kind"] for word in ("DS101", "MG001", "DF101") if word in by_word} == {"code"}
    for subject in subjects:
        assert subject["summary"]
        assert "error" not in await ask(client, "dsmigrate.explain", subject["word"]), subject


async def test_the_key_at_a_position_is_explained(client: LanguageClient, workspace: Path) -> None:
    config = write(client, workspace, "ds_config.json", CONFIG)

    async def at(piece: str) -> Any:
        position = config.at(piece)
        place = {"line": position.line, "character": position.character}
        return await ask(client, "dsmigrate.explain", "", config.uri, place)

    assert (await at("stage"))["word"] == "zero_optimization.stage"
    assert "AdamW" in (await at("AdamW"))["markdown"]
    assert (await at("lr"))["word"] == "optimizer.params.lr"
    assert (await at("}\n"))["error"] == "there is no key here"
    config.close()
