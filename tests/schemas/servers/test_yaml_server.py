"""Red Hat's YAML server (VS Code, Neovim, Emacs …) on a config in YAML that names the schema in its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from tests.schemas.support import NAME, paths, schema

from .editor import Editor

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def editor(node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    server = node_modules / "yaml-language-server" / "bin" / "yaml-language-server"
    choices = {"schemaStore": {"enable": False}, "schemas": {}, "validate": True, "hover": True, "completion": True}
    started = Editor(
        ["node", str(server), "--stdio"],
        tmp_path_factory.mktemp("yaml"),
        language="yaml",
        settings={"yaml": choices, "http": {}},
    )
    yield started
    started.close()


def under_the_schema(text: str) -> str:
    return f"# yaml-language-server: $schema={paths()[NAME].as_uri()}\n{text}"


def messages(editor: Editor, text: str) -> list[str]:
    return [problem.message for problem in editor.diagnostics(under_the_schema(text))]


def test_a_good_config_has_no_diagnostic(editor: Editor) -> None:
    text = "train_batch_size: auto\nbf16:\n  enabled: true\nzero_optimization:\n  stage: 2\n  reduce_bucket_size: 5e8\n"
    assert messages(editor, text) == []


def test_an_unknown_key_of_a_closed_section_is_reported(editor: Editor) -> None:
    assert messages(editor, "zero_optimization:\n  stagee: 2\n") == ["Property stagee is not allowed."]


def test_a_removed_key_is_reported(editor: Editor) -> None:
    """The server knows no ``errorMessage`` for ``not``: the words are in the hover."""
    assert messages(editor, "amp:\n  enabled: true\n") == ["Matches a schema that is not allowed."]
    assert "Removed: DeepSpeed rejects a config that holds it" in editor.hover(under_the_schema("am|p: {}\n"))


def test_a_wrong_value_of_a_list_names_the_right_ones(editor: Editor) -> None:
    (found,) = messages(editor, "zero_optimization:\n  stage: 5\n")
    assert found == 'Value is not accepted. Valid values: 0, 1, 2, 3, "auto".'


def test_the_parameters_follow_the_type_of_the_optimizer(editor: Editor) -> None:
    text = "optimizer:\n  type: AdamW\n  params:\n    lr: 0.1\n    momentum: 0.9\n"
    assert messages(editor, text) == ["Property momentum is not allowed."]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("zero_opt|imization:\n  stage: 2\n", "zero_optimization"),
        ("fp1|6:\n  enabled: true\n", "fp16"),
        ("am|p: {}\n", "amp"),
    ],
)
def test_a_hover_shows_our_markdown(editor: Editor, text: str, key: str) -> None:
    assert schema()["properties"][key]["markdownDescription"] in editor.hover(under_the_schema(text))


def test_a_hover_on_the_stage_shows_our_markdown(editor: Editor) -> None:
    assert "default `0`" in editor.hover(under_the_schema("zero_optimization:\n  sta|ge: 2\n"))


@pytest.mark.parametrize("value", ["8", "auto", "null"])
def test_a_hover_on_a_key_with_several_types_shows_our_markdown(editor: Editor, value: str) -> None:
    described = schema()["properties"]["train_batch_size"]["markdownDescription"]
    assert described in editor.hover(under_the_schema(f"train_batch|_size: {value}\n"))


def test_the_keys_of_a_section_are_offered(editor: Editor) -> None:
    offered = editor.completions(under_the_schema("zero_optimization:\n  |"))
    assert {"stage", "offload_optimizer", "overlap_comm"} <= set(offered)
    assert not {"cpu_offload", "mics_shard_size", "prefetch_bucket_size"} & set(offered)


def test_values_of_a_list_are_offered_with_what_they_mean(editor: Editor) -> None:
    offered = editor.completions(under_the_schema("checkpoint:\n  tag_validation: |"))
    assert set(offered) == {"WARN", "IGNORE", "FAIL"}
    assert all(
        isinstance(item.documentation, lsp.MarkupContent) and item.documentation.value for item in offered.values()
    )


def test_an_empty_file_is_offered_whole_configs(editor: Editor) -> None:
    offered = editor.completions(under_the_schema("|"))
    for snippet in schema()["defaultSnippets"]:
        text = offered[snippet["label"]].insert_text or ""
        assert messages(editor, text) == [], snippet["label"]


def test_the_parameters_that_are_offered_follow_the_type(editor: Editor) -> None:
    text = "optimizer:\n  type: {}\n  params:\n    |"
    assert {"betas", "eps"} <= set(editor.completions(under_the_schema(text.format("AdamW"))))
    assert "betas" not in editor.completions(under_the_schema(text.format("SGD")))
