from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import Encoding, LineIndex, Position
from tests.document import texts

TEXT = "a\r\né😀b\rc\n\n😀"
STARTS = [0, 3, 7, 9, 10]


def test_lines_end_with_each_kind_of_line_end() -> None:
    index = LineIndex(TEXT)
    assert index.starts == STARTS
    assert [index.line_range(line) for line in range(5)] == [(0, 1), (3, 6), (7, 8), (9, 9), (10, 11)]
    assert [index.line_of(offset) for offset in range(12)] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 4]


@pytest.mark.parametrize(("encoding", "behind_smile"), [(Encoding.UTF8, 6), (Encoding.UTF16, 3), (Encoding.UTF32, 2)])
def test_characters_are_units_of_the_encoding(encoding: Encoding, behind_smile: int) -> None:
    index = LineIndex(TEXT)
    assert index.position(5, encoding) == Position(1, behind_smile)
    assert index.offset(Position(1, behind_smile), encoding) == 5
    assert index.position(11, encoding).line == 4


def test_positions_are_clamped_as_the_protocol_says() -> None:
    index = LineIndex(TEXT)
    assert index.offset(Position(0, 99)) == 1
    assert index.offset(Position(99, 0)) == len(TEXT)
    assert index.offset(Position(-1, 5)) == 0
    assert index.offset(Position(1, -1)) == 3
    assert index.offset(Position(1, 2)) == 4, "within a surrogate pair means its start"
    assert index.position(-5) == Position(0, 0)
    assert index.position(99) == Position(4, 2)
    assert index.position(2) == Position(0, 1), "between the two characters of a line end"


def test_lone_surrogates_count_as_one_unit() -> None:
    index = LineIndex("\ud800\udc00x")
    assert index.position(2, Encoding.UTF16) == Position(0, 2)
    assert index.offset(Position(0, 2), Encoding.UTF16) == 2
    assert index.position(2, Encoding.UTF8) == Position(0, 6)


def test_long_lines_are_counted_in_steps() -> None:
    text = "é😀" * 5000
    index = LineIndex(text)
    for offset in (0, 1, 1023, 1024, 1025, 5001, 9999, 10_000):
        for encoding in Encoding:
            assert index.offset(index.position(offset, encoding), encoding) == offset


@texts.GENERAL
@given(st.text(alphabet="a\r\né😀\ud800"), st.sampled_from(Encoding))
def test_offsets_come_back(text: str, encoding: Encoding) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        position = index.position(offset, encoding)
        back = index.offset(position, encoding)
        start, end = index.line_range(position.line)
        assert back == min(offset, end)
        prefix = text[start:back]
        units = {
            Encoding.UTF8: len(prefix.encode("utf-8", "surrogatepass")),
            Encoding.UTF16: sum(1 + (ord(char) > 0xFFFF) for char in prefix),
            Encoding.UTF32: len(prefix),
        }
        assert position.character == units[encoding]
