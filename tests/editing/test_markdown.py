from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.editing.markdown import code, flow, plain, safe

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("**In this file**", "In this file"),
        ("`fp16.enabled` is `true`.", "fp16.enabled is true."),
        ("- `cpu`: in host memory\n- `none`: on the GPU", "- cpu: in host memory\n- none: on the GPU"),
        (
            "[Documentation](https://a.b/c.md#d) · DeepSpeed 0.19.8",
            "Documentation (https://a.b/c.md#d) · DeepSpeed 0.19.8",
        ),
        ("see <https://github.com/x/y/issues/3>", "see https://github.com/x/y/issues/3"),
        ("# `stage`\n\n## History", "stage\n\nHistory"),
        ("`**not bold**` and `[a](b)` stay", "**not bold** and [a](b) stay"),
        ("`` a`b `` has a backtick", "a`b has a backtick"),
        ("5 * 1e8 * 2 bytes, 2_000_000", "5 * 1e8 * 2 bytes, 2_000_000"),
        (r"a \* b \_ c", "a * b _ c"),
        ('```json\n{"a": **1**}\n```\nafter', '{"a": **1**}\nafter'),
        ("a single ` stays", "a single ` stays"),
        ("", ""),
    ],
)
def test_markdown_becomes_readable_text(markdown: str, text: str) -> None:
    assert plain(markdown) == text


@given(ANY_TEXT)
def test_any_text_becomes_some_text(text: str) -> None:
    assert plain(text).count("\n") <= text.count("\n")


@given(ANY_TEXT)
def test_a_code_span_is_one_line_that_reads_back(text: str) -> None:
    span = code(text)
    assert "\n" not in span
    span.encode("utf-8")
    assert len(plain(span)) <= 60
    assert plain(f"**a** {span} b").startswith("a ")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("stage", "`stage`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a\nb\tc", "`a b c`"),
        ("", '`""`'),
        ("x" * 100, f"`{'x' * 59}…`"),
        ("\ud800", "`\ufffd`"),
    ],
)
def test_code_spans_hold_anything(text: str, span: str) -> None:
    assert code(text) == span


def test_lone_surrogates_are_replaced_and_pairs_stay() -> None:
    assert safe("a\udcffb😀") == "a\ufffdb😀"


def test_paragraphs_flow_and_lists_stay() -> None:
    text = "One line\nand another.\n\nAs follows:\n\n- Stage 0: nothing\n  at all\n- Stage 1\n1. first\n"
    assert flow(text) == "One line and another.\n\nAs follows:\n\n- Stage 0: nothing   at all\n- Stage 1\n1. first"
