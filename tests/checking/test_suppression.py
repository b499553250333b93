from __future__ import annotations

import pytest

from dsmigrate.checking.suppression import suppressions, visible
from dsmigrate.document import parse
from dsmigrate.rules import Effect, Finding, Severity


def finding(text: str, word: str, path: tuple[str, ...], code: str = "DS401") -> Finding:
    start = text.index(word)
    return Finding(code, Severity.WARNING, Effect.IGNORED, "m", path, start, start + len(word))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('{"a": 1}', False),
        ('{"a": 1} // dsmigrate: ignore[DS401]', True),
        ('{"a": 1} // dsmigrate: ignore[DS4]', True),
        ('{"a": 1} // dsmigrate: ignore[DS1, DS401]', True),
        ('{"a": 1} // dsmigrate: ignore', True),
        ('{"a": 1} # dsmigrate: ignore[DS402]', False),
        ('// dsmigrate: ignore[DS401]\n{"a": 1}', True),
        ('{"b": 2, // dsmigrate: ignore[DS401]\n"a": 1}', False),
        ('{\n"b": 2,\n/* dsmigrate: ignore-file[DS4] */\n"a": 1}', True),
        ('{"a": 1, "_dsmigrate": {"ignore": ["DS401"]}}', True),
        ('{"a": 1, "_dsmigrate": {"ignore": "DS1,DS4"}}', True),
        ('{"a": 1, "_dsmigrate": {"ignore-at": {"a": ["DS4"]}}}', True),
        ('{"a": 1, "_dsmigrate": {"ignore-at": {"b": ["DS4"]}}}', False),
        ('{"a": 1, "_dsmigrate": {"ignore-at": {"a..": ["DS4"], "b": 3}, "ignore": 7}}', False),
        ('{"a": 1, "_dsmigrate": {"ignore": [""]}}', False),
        ('{"a": 1, "_dsmigrate": 3}', False),
    ],
)
def test_a_file_says_what_it_does_not_want_to_hear(text: str, hidden: bool) -> None:
    found = finding(text, '"a"', ("a",))
    assert visible(parse(text), [found]) == ([] if hidden else [found])


def test_a_path_hides_what_lies_below_it() -> None:
    text = '{"a": {"b": 1}, "_dsmigrate": {"ignore-at": {"a": ["DS"]}}}'
    assert suppressions(parse(text)).hides(finding(text, '"b"', ("a", "b")), 0)
