from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.actions.where import here

TEXT = '{"a": 1, "b": {"c": [10, {"d": 2}], "e": {}}, "f": 3}'


@pytest.mark.parametrize(
    ("words", "path", "section"),
    [
        ('"a"', ("a",), ()),
        ("1,", (), ()),  # one comma too much: between the keys
        ('"c"', ("b", "c"), ("b",)),
        ("10", ("b", "c", 0), ("b",)),
        ('"d"', ("b", "c", 1, "d"), ("b", "c", 1)),
        ("{}", ("b", "e"), ("b", "e")),
        ('"f"', ("f",), ()),
        ('1, "b"', (), ()),
    ],
)
def test_a_range_lies_in_the_innermost_member_around_it(
    words: str, path: tuple[str | int, ...], section: tuple[str | int, ...]
) -> None:
    start = TEXT.index(words)
    place = here(parse(TEXT), start, start + len(words))
    assert (place.path, place.section) == (path, section)


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: 1\nb: {c: 2}\n", '{"a": {"b": ', '"text"'])
def test_any_range_of_any_text_lies_somewhere(text: str) -> None:
    document = parse(text)
    for start in range(-2, len(text) + 3):
        for end in range(-2, len(text) + 3):
            place = here(document, start, end)
            assert 0 <= place.start <= place.end <= len(text)
            assert place.path[: len(place.section)] == place.section
