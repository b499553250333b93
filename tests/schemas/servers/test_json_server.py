"""VS Code's own JSON server on the schema: what a user sees without any extension."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from tests.schemas.support import NAME, good_configs, paths, schema

from .editor import Editor

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def editor(node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    server = node_modules / "vscode-langservers-extracted" / "bin" / "vscode-json-language-server"
    association = {"fileMatch": ["ds_config*.json"], "url": paths()[NAME].as_uri(), "schema": schema()}
    started = Editor(
        ["node", str(server), "--stdio"],
        tmp_path_factory.mktemp("json"),
        language="json",
        settings={"json": {"validate": {"enable": True}, "schemas": [association]}},
    )
    yield started
    started.close()


def said(editor: Editor, text: str) -> list[tuple[str, str]]:
    """Return each diagnostic as the text that it underlines, of a document of one line, and its message."""
    return [
        (text[problem.range.start.character : problem.range.end.character], problem.message)
        for problem in editor.diagnostics(text)
    ]


def inserted(item: lsp.CompletionItem) -> str:
    assert isinstance(item.text_edit, lsp.TextEdit)
    return item.text_edit.new_text


def documentation(item: lsp.CompletionItem) -> str:
    return item.documentation.value if isinstance(item.documentation, lsp.MarkupContent) else item.documentation or ""


def test_good_configs_have_no_diagnostic_but_what_is_deprecated(editor: Editor) -> None:
    for name, minor, path in good_configs():
        if minor is None:
            messages = [problem.message for problem in editor.diagnostics(path.read_text(encoding="utf-8"))]
            assert all(message.startswith("Deprecated") for message in messages), (name, messages)


def test_an_unknown_key_of_a_closed_section_is_underlined(editor: Editor) -> None:
    found = said(editor, '{"zero_optimization": {"stage": 2, "stagee": 2}}')
    assert found == [('"stagee"', "Property stagee is not allowed.")]


def test_an_unknown_key_at_the_top_is_not(editor: Editor) -> None:
    assert said(editor, '{"train_batch_size": 8, "my_application": {"a": 1}}') == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"amp": {"enabled": true}}', "Removed: DeepSpeed rejects a config that holds it since 0.19.8"),
        (
            '{"zero_optimization": {"mics_shard_size": 8}}',
            "Removed: DeepSpeed rejects a config that holds it since 0.19.7",
        ),
    ],
)
def test_a_removed_key_says_so_once_and_in_our_words(editor: Editor, text: str, message: str) -> None:
    (found,) = said(editor, text)
    assert found[1].startswith(message)


def test_a_wrong_value_of_a_list_names_the_right_ones(editor: Editor) -> None:
    found = said(editor, '{"zero_optimization": {"stage": 5}}')
    assert found == [("5", 'Value is not accepted. Valid values: 0, 1, 2, 3, "auto".')]
    (wrong,) = said(editor, '{"communication_data_type": "bfp16"}')
    assert wrong[0] == '"bfp16"'
    assert '"fp16", "bf16", "fp32"' in wrong[1]


def test_a_wrong_type_is_underlined(editor: Editor) -> None:
    (found,) = said(editor, '{"zero_optimization": {"reduce_bucket_size": "5e8"}}')
    assert found[0] == '"5e8"'
    assert found[1].startswith("Incorrect type.")


@pytest.mark.parametrize("number", ["500000000", "5e8", "8.3e7", "500000000.0"])
def test_whole_numbers_pass_however_they_are_written(editor: Editor, number: str) -> None:
    assert said(editor, f'{{"zero_optimization": {{"reduce_bucket_size": {number}}}}}') == []


def test_a_deprecated_key_is_a_warning_with_its_successor(editor: Editor) -> None:
    (found,) = editor.diagnostics('{"zero_optimization": {"stage": 2, "cpu_offload": true}}')
    assert found.severity is lsp.DiagnosticSeverity.Warning
    assert found.message == "Deprecated; use `zero_optimization.offload_optimizer`."


def test_both_precisions_at_once_are_named(editor: Editor) -> None:
    found = said(editor, '{"fp16": {"enabled": true}, "bf16": {"enabled":true}}')
    assert found == [("true", "fp16 and bf16 cannot both be on.")]


def test_comments_and_trailing_commas_are_fine(editor: Editor) -> None:
    assert (
        editor.diagnostics('{\n  // why\n  "train_batch_size": 8, /* and how */\n  "bf16": {"enabled": true,},\n}\n')
        == []
    )


def test_a_syntax_error_is_still_one(editor: Editor) -> None:
    assert editor.diagnostics('{"train_batch_size": }') != []


def test_the_parameters_follow_the_type_of_the_optimizer(editor: Editor) -> None:
    text = '{{"optimizer": {{"type": "{}", "params": {{"lr": 0.1, "momentum": 0.9}}}}}}'
    assert said(editor, text.format("AdamW")) == [('"momentum"', "Property momentum is not allowed.")]
    assert said(editor, text.format("SGD")) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"zero_optimization": {"sta|ge": 2}}', ("zero_optimization", "stage")),
        ('{"zero_optimization": {"stage": |2}}', ("zero_optimization", "stage")),
        ('{"train_batch|_size": "auto"}', ("train_batch_size",)),
        ('{"zero_opt|imization": {"stage": 2}}', ("zero_optimization",)),
        (
            '{"zero_optimization": {"offload_optimizer": {"dev|ice": "cpu"}}}',
            ("zero_optimization", "offload_optimizer", "device"),
        ),
        ('{"fp1|6": {"enabled": true}}', ("fp16",)),
        ('{"am|p": {"enabled": true}}', ("amp",)),
    ],
)
def test_a_hover_shows_our_markdown(editor: Editor, text: str, path: tuple[str, ...]) -> None:
    described = key_schema(*path)["markdownDescription"]
    assert editor.hover(text).startswith(described)


def key_schema(*path: str) -> dict[str, Any]:
    """Return the schema of a key, through the alternatives of its sections."""
    found = schema()
    for name in path:
        places = [found, *found.get("anyOf", ()), found.get("then", {}), found.get("else", {})]
        found = next(place["properties"][name] for place in places if name in place.get("properties", {}))
    return found


def test_a_hover_on_a_value_of_a_list_tells_what_it_means(editor: Editor) -> None:
    assert '`"WARN"`' in editor.hover('{"checkpoint": {"tag_validation": "WA|RN"}}').replace("`WARN`", '`"WARN"`')


def test_a_hover_on_a_parameter_tells_of_it(editor: Editor) -> None:
    described = schema()["definitions"]["optimizer-AdamW"]["properties"]["betas"]["markdownDescription"]
    assert editor.hover('{"optimizer": {"type": "AdamW", "params": {"bet|as": [0.9, 0.99]}}}').startswith(described)


def test_the_keys_of_a_section_are_offered_with_their_documentation(editor: Editor) -> None:
    offered = editor.completions('{"zero_optimization": {|}}')
    assert {"stage", "offload_optimizer", "offload_param", "overlap_comm", "stage3_prefetch_bucket_size"} <= set(
        offered
    )
    assert documentation(offered["stage"]) == key_schema("zero_optimization", "stage")["markdownDescription"]


def test_keys_that_are_there_are_not_offered_again(editor: Editor) -> None:
    assert "stage" not in editor.completions('{"zero_optimization": {"stage": 2, |}}')


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"zero_optimization": {|}}', {"cpu_offload", "mics_shard_size", "prefetch_bucket_size"}),
        ("{|}", {"amp", "elasticity", "curriculum_learning", "compression_training", "bfloat16"}),
    ],
)
def test_keys_that_are_gone_deprecated_or_second_spellings_are_not_offered(
    editor: Editor, text: str, names: set[str]
) -> None:
    assert names & set(editor.completions(text)) == set()


def test_a_key_brings_a_value_along(editor: Editor) -> None:
    """Accepting a key must leave something behind the colon, and never null where an object or a value belongs."""
    for section in (
        "{|}",
        '{"zero_optimization": {|}}',
        '{"optimizer": {|}}',
        '{"optimizer": {"type": "AdamW", "params": {|}}}',
    ):
        for name, item in editor.completions(section).items():
            if item.kind == lsp.CompletionItemKind.Property:
                assert inserted(item).startswith(f'"{name}": '), inserted(item)
                assert "null" not in inserted(item), inserted(item)


def test_values_of_a_list_are_offered_with_what_they_mean(editor: Editor) -> None:
    offered = editor.completions('{"checkpoint": {"tag_validation": |}}')
    assert set(offered) == {'"WARN"', '"IGNORE"', '"FAIL"'}
    assert all(documentation(item) for item in offered.values())
    stages = editor.completions('{"zero_optimization": {"stage": |}}')
    assert set(stages) == {"0", "1", "2", "3", '"auto"'}
    assert all(documentation(stages[stage]) for stage in "0123")


def test_nothing_but_objects_is_offered_for_zero(editor: Editor) -> None:
    offered = editor.completions('{"zero_optimization": |}')
    assert {"ZeRO-1", "ZeRO-2", "ZeRO-3"} <= set(offered)
    assert not {"true", "false"} & set(offered)


def test_auto_is_offered_where_it_is_filled(editor: Editor) -> None:
    assert '"auto"' in editor.completions('{"train_micro_batch_size_per_gpu": |}')
    assert '"auto"' not in editor.completions('{"zero_optimization": {"sub_group_size": |}}')


def test_an_empty_file_is_offered_whole_configs(editor: Editor) -> None:
    offered = editor.completions("|")
    labels = [snippet["label"] for snippet in schema()["defaultSnippets"]]
    assert set(labels) <= set(offered)
    assert len(labels) >= 5
    for label in labels:
        assert "zero_optimization" in inserted(offered[label]) or "fp16" in inserted(offered[label])
        assert editor.diagnostics(inserted(offered[label])) == [], label


def test_types_of_optimizers_are_offered_with_what_they_are(editor: Editor) -> None:
    offered = editor.completions('{"optimizer": {"type": |}}')
    assert {'"Adam"', '"AdamW"', '"Lion"', '"SGD"'} <= set(offered)
    assert "null" not in offered
    assert all(documentation(item) for item in offered.values())


def test_the_parameters_that_are_offered_follow_the_type(editor: Editor) -> None:
    text = '{{"optimizer": {{"type": "{}", "params": {{|}}}}}}'
    adamw = editor.completions(text.format("AdamW"))
    assert {"lr", "betas", "eps", "weight_decay"} <= set(adamw)
    assert "momentum" not in adamw
    sgd = editor.completions(text.format("SGD"))
    assert {"lr", "momentum", "nesterov"} <= set(sgd)
    assert "betas" not in sgd
    warmup = editor.completions('{"scheduler": {"type": "WarmupLR", "params": {|}}}')
    assert "warmup_num_steps" in warmup
    assert "total_num_steps" not in warmup


def test_the_schema_itself_can_be_named_by_the_file(editor: Editor) -> None:
    """``$schema`` is a key like any other: DeepSpeed swallows it."""
    text = json.dumps({"$schema": paths()[NAME].as_uri(), "train_batch_size": 8})
    assert [problem.message for problem in editor.diagnostics(text)] == []
