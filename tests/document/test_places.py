"""What lies at the cursor, marked | in the texts."""

from __future__ import annotations

import pytest
from hypothesis import given

from dsmigrate.document import Path, Place, Where, parse
from tests.document import samples, texts


def place(text: str) -> Place:
    return parse(text.replace("|", "")).place_at(text.index("|"))


CASES: list[tuple[str, Where, Path]] = [
    ('{"a|b": 1}', Where.KEY, ("ab",)),
    ('{|"ab": 1}', Where.KEY, ("ab",)),
    ('{"ab"|: 1}', Where.KEY, ("ab",)),
    ('{"ab" |: 1}', Where.COLON_GAP, ()),
    ('{"ab":| 1}', Where.VALUE_GAP, ("ab",)),
    ('{"ab": |1}', Where.VALUE, ("ab",)),
    ('{"ab": 1|}', Where.VALUE, ("ab",)),
    ('{"ab": 1 |}', Where.AFTER_VALUE, ()),
    ('{"ab": 1|, "c": 2}', Where.VALUE, ("ab",)),
    ('{"ab": 1,| "c": 2}', Where.KEY_GAP, ()),
    ('{"ab": 1,|}', Where.KEY_GAP, ()),
    ("{|}", Where.KEY_GAP, ()),
    ("{ | }", Where.KEY_GAP, ()),
    ('{"z": {|}}', Where.KEY_GAP, ("z",)),
    ('{"z": |{}}', Where.VALUE, ("z",)),
    ('{"z": {}|}', Where.AFTER_VALUE, ()),
    ('{"z": {\n  "a": 1\n  |\n}}', Where.KEY_GAP, ("z",)),
    ('{"z": |', Where.VALUE_GAP, ("z",)),
    ('{"z": |}', Where.VALUE_GAP, ("z",)),
    ('{"z":|, "y": 1}', Where.VALUE_GAP, ("z",)),
    ('{\n  "z": |\n  "y": 1\n}', Where.VALUE_GAP, ("z",)),
    ('{"z": "au|', Where.VALUE, ("z",)),
    ('{"z": tr|, "y": 1}', Where.VALUE, ("z",)),
    ('{"z": {"zer|', Where.KEY, ("z", "zer")),
    ('{"z": {"a": 1, |', Where.KEY_GAP, ("z",)),
    ("{\n  sta|\n}", Where.KEY, ("sta",)),
    ('{"a": [|]}', Where.VALUE_GAP, ("a", 0)),
    ('{"a": [1, |]}', Where.VALUE_GAP, ("a", 1)),
    ('{"a": [1, 2|, 3]}', Where.VALUE, ("a", 1)),
    ('{"a": [1, {"b": |2}]}', Where.VALUE, ("a", 1, "b")),
    ('{"a": 1 // no|te\n}', Where.COMMENT, ()),
    ('{"a": 1 // note|\n}', Where.COMMENT, ()),
    ('{"a": 1, /* | */ "b": 2}', Where.COMMENT, ()),
    ('{"a": 1, /* */| "b": 2}', Where.KEY_GAP, ()),
    ("# begin|ning\n{}", Where.COMMENT, ()),
    (" |{}", Where.VALUE, ()),
    ("{} |", Where.OUTSIDE, ()),
    ("|", Where.OUTSIDE, ()),
    ("a: 1\n|", Where.KEY_GAP, ()),
    ("a: 1\nb: {c: |2}", Where.VALUE, ("b", "c")),
    ("a: wor|ds here\n", Where.VALUE, ("a",)),
    ("sta|", Where.VALUE, ()),
]


@pytest.mark.parametrize(("text", "where", "path"), CASES, ids=[case[0] for case in CASES])
def test_the_place_of_a_cursor(text: str, where: Where, path: Path) -> None:
    found = place(text)
    assert (found.where, found.path) == (where, path)


def test_a_place_says_what_completion_would_replace() -> None:
    found = place('{"zero_opt|imization": 1}')
    assert (found.start, found.end) == (1, 20)
    assert found.node is not None
    assert found.node.raw == '"zero_optimization"'
    assert not found.unfinished


@pytest.mark.parametrize("text", ['{"a": "au|', "{'au|", '{\n"a": "au|\n}', "{\na: '''au|"])
def test_a_string_without_its_end_is_unfinished(text: str) -> None:
    assert place(text).unfinished


def test_a_gap_tells_whether_a_comma_is_needed_and_how_many_came_before() -> None:
    found = place('{\n  "a": 1,\n  "b": 2\n  |\n}')
    assert (found.index, found.needs_comma) == (2, True)
    found = place('{\n  "a": 1,\n  |"b": 2\n}')
    assert found.index == 2
    found = place('{\n  "a": 1, | "b": 2\n}')
    assert (found.index, found.needs_comma) == (1, False)
    assert place('{\n  "a": 1 |\n}').needs_comma


@texts.GENERAL
@given(texts.TEXTS)
def test_every_offset_of_any_text_has_a_place(text: str) -> None:
    document = parse(text)
    for offset in range(-1, len(text) + 2, max(1, len(text) // 50)):
        found = document.place_at(offset)
        assert found.start <= min(max(offset, 0), len(text)) <= found.end
        if found.where is Where.VALUE and not document.duplicates and "" not in found.path:
            assert found.node is not None
            assert document.node_at(found.path) == found.node


def test_every_key_and_value_is_found_where_it_stands() -> None:
    for text in samples.ALL.values():
        document = parse(text)
        for path, member, node in document.walk():
            if member is not None and member.key is not None:
                found = document.place_at(member.key.start)
                assert (found.where, found.path, found.node) == (Where.KEY, path, member.key)
            if node is not None and (path or not hasattr(node, "has_braces") or node.has_braces):
                found = document.place_at(node.start)
                assert (found.path, found.node) == (path, node), text
