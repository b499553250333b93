"""The Chinese guides are the English ones: the same files, blocks, parts and links, and the same words in backticks."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
CHINESE = GUIDES / "zh-CN"
NAMES = sorted(page.name for page in GUIDES.glob("*.md"))
_FENCED = re.compile(r"^```(.*?)^```$", re.MULTILINE | re.DOTALL)
_UNNAMED = "text\n"
"""How a block begins that is a text for readers, such as a formula: it may be translated."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    found: list[str] = _FENCED.findall(text)
    return [_UNNAMED if block.startswith(_UNNAMED) else block for block in found]


def prose(text: str) -> str:
    return _FENCED.sub("", text)


def outline(text: str) -> list[str]:
    """Return how each line of a heading, list or table begins."""
    return re.findall(r"^(#+ |- |\d+\. |\|)", prose(text), re.MULTILINE)


def links(page: Path) -> list[str]:
    """Return the files that a page links to. A guide in its language stands for itself."""
    targets = re.findall(r"\]\(([^)#]+)", prose(read(page)))
    return [(page.parent / target).resolve().relative_to(GUIDES.parent).as_posix() for target in targets]


def code(text: str) -> Counter[str]:
    return Counter(re.findall(r"`([^`\n]+)`", prose(text)))


def test_there_is_a_guide_in_chinese_for_every_guide() -> None:
    assert NAMES
    assert sorted(page.name for page in CHINESE.glob("*")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_in_chinese_has_the_blocks_of_the_english_one(name: str) -> None:
    assert blocks(read(CHINESE / name)) == blocks(read(GUIDES / name))


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_in_chinese_has_the_parts_of_the_english_one(name: str) -> None:
    assert outline(read(CHINESE / name)) == outline(read(GUIDES / name))


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_in_chinese_names_the_same_keys_and_commands(name: str) -> None:
    assert code(read(CHINESE / name)) == code(read(GUIDES / name))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "README.md"])
def test_a_guide_in_chinese_links_to_guides_in_chinese(name: str) -> None:
    there = [target.replace("guides/", "guides/zh-CN/") for target in links(GUIDES / name)]
    assert Counter(links(CHINESE / name)) == Counter(there)


def test_the_lists_of_guides_link_to_each_other() -> None:
    assert "[简体中文](zh-CN/README.md)" in read(GUIDES / "README.md")
    assert "[English](../README.md)" in read(CHINESE / "README.md")
    assert {name for name in NAMES if f"]({name})" in read(CHINESE / "README.md")} == {*NAMES} - {"README.md"}


@pytest.mark.parametrize("name", NAMES)
def test_chinese_is_set_as_the_key_documentation_is(name: str) -> None:
    """A space stands between Han characters and Latin letters or code, and punctuation after Han is full-width."""
    text = re.sub(r"\]\([^)]*\)", "]", prose(read(CHINESE / name)))
    plain = re.sub(r"`[^`\n]+`", "`", text).replace("*", "")
    assert re.findall(r".{0,8}(?:[一-鿿][A-Za-z0-9`]|[A-Za-z0-9`][一-鿿]).{0,8}", plain) == []
    assert re.findall(r".{0,8}[一-鿿][,;:?!()].{0,8}", plain) == []
