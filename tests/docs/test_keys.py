from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsmigrate.docs import keys
from dsmigrate.knowledge import knowledge

_LINK = re.compile(r"\]\(([a-z0-9_]+\.md)(?:#([^)]+))?\)")
_HEADING = re.compile(r"^#+ `([^`]+)`", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return keys.pages(knowledge())


def test_every_key_and_type_has_its_place(pages: dict[str, str]) -> None:
    headings = {heading for text in pages.values() for heading in _HEADING.findall(text)}
    assert set(knowledge().every_path()) <= headings
    assert {facts.name for facts in knowledge().every_optimizer()} <= headings
    assert {facts.name for facts in knowledge().every_scheduler()} <= headings


def test_every_link_leads_somewhere(pages: dict[str, str]) -> None:
    anchors = {name: {keys.anchor(heading) for heading in _HEADING.findall(text)} for name, text in pages.items()}
    broken = {
        f"{name}: {file}#{anchor}"
        for name, text in pages.items()
        for file, anchor in _LINK.findall(text)
        if file not in pages or (anchor and anchor not in anchors[file])
    }
    assert broken == set()


def test_every_page_says_in_its_first_line_that_it_is_generated(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert text.startswith(f"{keys.MARK}\n\n# "), name
        assert text.endswith("\n"), name
        assert "\n\n\n" not in text, name


def test_the_index_leads_to_every_page(pages: dict[str, str]) -> None:
    linked = {file for file, _ in _LINK.findall(pages["README.md"])}
    assert linked == pages.keys() - {"README.md"}


def test_a_key_is_told_whole() -> None:
    key = knowledge().key("zero_optimization.stage3_prefetch_bucket_size")
    assert key is not None
    text = keys.key_text(key, knowledge())
    for part in (
        "# `zero_optimization.stage3_prefetch_bucket_size`\n\n",
        "integer ≥ 0 (elements) · default `50000000` · 0.9 or earlier",
        "Also accepted as `prefetch_bucket_size`.",
        "Does something only when `zero_optimization.stage` is `3`.",
        '- Transformers Trainer fills "auto" with 0.9 × hidden_size squared.',
        "Source: `deepspeed/",
    ):
        assert part in text


def test_pages_name_no_place_of_a_machine(pages: dict[str, str]) -> None:
    home = str(Path.home())
    assert [name for name, text in pages.items() if home in text or "/tmp" in text or "/work/" in text] == []
