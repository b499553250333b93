"""Sizes, depths and characters that break others."""

from __future__ import annotations

import copy
import json

import pytest

from dsmigrate.document import Breaks, Code, DocumentError, parse, parse_bytes
from dsmigrate.document.edits import insert
from dsmigrate.document.errors import EditError
from tests.document.outline import assert_same, outline

pytestmark = pytest.mark.broad

DEPTH = 10_000


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("{a: [", "]}"), ("[", "")])
def test_deep_nesting_is_read_compared_shown_and_forgotten(opening: str, closing: str) -> None:
    text = opening * DEPTH + "1" + closing * DEPTH
    document = parse(text)
    assert Code.TOO_DEEP in {item.code for item in document.problems}
    value = document.value()
    for _ in range(1000):
        value = value[0] if isinstance(value, list) else value["a"]  # type: ignore[index]
    assert document == parse(text)
    assert len(repr(document.root)) < 100
    middle = len(text) // 2
    assert document.place_at(middle).path
    edited = document.edit(text.index("1"), text.index("1") + 1, "[2, 3]")
    assert outline(edited) == outline(parse(edited.text))
    del document, edited, value


def test_the_depth_that_deepspeed_does_not_survive_is_named() -> None:
    text = "[" * 600 + "]" * 600
    found = [item for item in parse(text).problems if item.code is Code.TOO_DEEP]
    assert [(item.start, item.end, item.breaks) for item in found] == [(490, 491, Breaks.HJSON)]
    assert "about 490 levels" in found[0].message
    assert not any(item.code is Code.TOO_DEEP for item in parse("[" * 490 + "]" * 490).problems)
    with pytest.raises(EditError, match="nested deeper"):
        insert(parse('{"a": ' + text + "}"), ("b",), 1)


def test_the_depth_follows_edits() -> None:
    document = parse('{"a": [], "b": ' + "[" * 500 + "]" * 500 + "}")
    assert not document.is_readable
    shallow = document.edit(document.text.index("[[["), document.text.index("}"), "[]")
    assert_same(shallow, parse(shallow.text))
    inner = document.edit(document.text.index("[]]") + 1, document.text.index("[]]") + 1, "[]")
    assert_same(inner, parse(inner.text))


def test_five_megabytes_of_members() -> None:
    part = {f"key {number}": {"a": [1, 2.5, "text"], "b c": None} for number in range(103_000)}
    text = json.dumps(part)
    assert len(text) > 5_000_000
    document = parse(text)
    assert document.is_strict_json
    assert document.value() == part
    at = text.index("2.5")
    edited = document.edit(at, at + 3, "7")
    assert edited.node_at(("key 0", "a", 1)).value() == 7  # type: ignore[union-attr]
    assert edited.is_strict_json


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, "]" * 100_000, "," * 100_000, '{"a":' * 50_000, ":" * 100_000),
        *("#\n" * 50_000, "/* */" * 50_000, "/*" * 100_000, " " * 5_000_000, "\r" * 100_000),
        *('"' * 100_000, "'" * 100_000, '"\\' * 100_000, '{"a": "' + "\\u00e9" * 50_000, "\x00" * 100_000),
        *("a" * 5_000_000, "a b " * 50_000, "a:" * 50_000, "{a: b, " * 50_000, "{a: " + "b, " * 100_000),
        *("[" * 10_000 + "}" * 100_000, "[" + "1" * 100_000, "'''" * 50_000, "{a\n" * 50_000, '{"a" ' * 50_000),
        *("{a: x" + " " * 100_000 + "y}", "{" + '"a" ' * 50_000, "{a: 1" + " ," * 50_000, "\ud800" * 100_000),
        *("[" + "true " * 50_000, "[" + "1" + " " * 100_000 + "x", "{'a':\n" * 50_000, '{"a"' + "\n" * 100_000),
    ],
    ids=range(33),
)
def test_long_nonsense_is_read_without_hanging(text: str) -> None:
    document = parse(text)
    assert document.problems
    document.value()
    document.place_at(len(text) // 2)


@pytest.mark.parametrize(
    "text", ["\x00", '{"\x00": 1}', "{a: \ud800}", '{"\U0010ffff": "\ufffe\uffff"}', "\u2028{}\x85"]
)
def test_odd_characters_stay_what_they_are(text: str) -> None:
    document = parse(text)
    assert document.text == text
    assert copy.copy(document.root) == document.root
    assert_same(document.edit(0, 0, ""), document)


def test_bytes_that_are_no_utf8_are_refused_with_their_place() -> None:
    with pytest.raises(DocumentError, match="byte 0xff at offset 6 is not valid UTF-8") as raised:
        parse_bytes(b'{"a": \xff}')
    assert raised.value.offset == 6
    with pytest.raises(DocumentError, match="UTF-16"):
        parse_bytes('{"a": 1}'.encode("utf-16"))


def test_a_byte_order_mark_stays_in_the_text() -> None:
    document = parse_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert document.has_bom
    assert document.value() == {"a": 1}
    assert document.text.encode() == b'\xef\xbb\xbf{"a": 1}'
    assert [item.code for item in document.problems] == [Code.BYTE_ORDER_MARK]
