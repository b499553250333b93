"""What is said about faults: code, place, whom it concerns."""

from __future__ import annotations

import pytest

from dsmigrate.document import Breaks, Code, parse
from dsmigrate.document.problems import _TABLE

FATAL: list[tuple[str, Code, str]] = [
    ('{"a" 1}', Code.MISSING_COLON, '"a"'),
    ('{"a": 1, sta}', Code.MISSING_COLON, "sta"),
    ("{a /* c */: 1}", Code.MISSING_COLON, "a"),
    ('{"a": , "b": 2}', Code.MISSING_VALUE, '"a":'),
    ('{"a":\n"b": 2}', Code.MISSING_VALUE, '"a":'),
    ('{"a": 1,, "b": 2}', Code.UNEXPECTED_COMMA, ","),
    ('{"a":: 1}', Code.UNEXPECTED_COLON, ":"),
    ("{: 1}", Code.MISSING_KEY, ":"),
    ('{"a": 1]}', Code.UNEXPECTED_CLOSING, "]"),
    ('{"a": [1}', Code.UNCLOSED, "["),
    ('{"a": {"b": 1}', Code.UNCLOSED, "{"),
    ('{"a": 1} {"b": 2}', Code.EXTRA_TEXT, '{"b": 2}'),
    ('{"a": tru, "b": 2}', Code.RUNS_ON, "tru"),
    ('{\n"a": "au\n}', Code.UNTERMINATED_STRING, '"au'),
    ("{\na: '''x\n}", Code.UNTERMINATED_STRING, "'''x\n}"),
    ("{\na: ''' ", Code.UNTERMINATED_MULTILINE, "''' "),
    ('{"a": 1 /* x }', Code.UNTERMINATED_COMMENT, "/* x }"),
    ('{"a": "\t"}', Code.CONTROL_CHARACTER, "\t"),
    ('{"a": "\\q"}', Code.BAD_ESCAPE, "\\q"),
    ('{"a": "\\u12"}', Code.BAD_ESCAPE, '\\u12"}'),
    ('{"a": "\\u-041"}', Code.NEGATIVE_ESCAPE, "\\u-041"),
    ("{a: '''x'''}", Code.MULTILINE_ON_ONE_LINE, "'''x'''"),
    ("\ufeff \n", Code.EMPTY_AFTER_MARK, ""),
    ('{"a": -1e400}', Code.NUMBER_TOO_LARGE, "-1e400"),
    ('{"a": ' + "1" * 5000 + "}", Code.NUMBER_TOO_LONG, "1" * 5000),
    ('{"a": 1, "b": 2, "a": 3}', Code.DUPLICATE_KEY, '"a"'),
]
LENIENT: list[tuple[str, Code, str]] = [
    ('{"a": 1} // c', Code.COMMENT, "// c"),
    ('{"a": 1,}', Code.TRAILING_COMMA, ","),
    ("[[1,],]", Code.TRAILING_COMMA, ","),
    ('{"a": 1\n"b": 2}', Code.MISSING_COMMA, ""),
    ("{a: 1}", Code.UNQUOTED_KEY, "a"),
    ('{"a": auto\n}', Code.QUOTELESS_STRING, "auto"),
    ('{"a": 01\n}', Code.QUOTELESS_STRING, "01"),
    ('{"a": NaN\n}', Code.CONSTANT, "NaN"),
    ("{'a': 1}", Code.SINGLE_QUOTES, "'a'"),
    ("{\n\"a\": '''x'''}", Code.MULTILINE_STRING, "'''x'''"),
    ('"a": 1', Code.NO_BRACES, ""),
    ('\ufeff{"a": 1}', Code.BYTE_ORDER_MARK, "\ufeff"),
    ("", Code.EMPTY, ""),
    ('{"a": "\\\'"}', Code.FOREIGN_ESCAPE, "\\'"),
    ('{"a": 1\u0661}', Code.FOREIGN_DIGITS, "1\u0661"),
    ('{"a": true\xa0}', Code.FOREIGN_SPACE, "true\xa0"),
]


@pytest.mark.parametrize(
    ("text", "code", "found"), FATAL, ids=[f"{case[1].value} {number}" for number, case in enumerate(FATAL)]
)
def test_what_deepspeed_rejects(text: str, code: Code, found: str) -> None:
    document = parse(text)
    fatal = [item for item in document.problems if item.is_fatal]
    assert code in {item.code for item in fatal}, fatal
    assert found in {text[item.start : item.end] for item in fatal if item.code is code}
    assert not document.is_readable


@pytest.mark.parametrize(("text", "code", "found"), LENIENT, ids=[case[1].value for case in LENIENT])
def test_what_only_strict_json_rejects(text: str, code: Code, found: str) -> None:
    document = parse(text)
    assert document.is_readable
    assert not document.is_strict_json
    assert (code, found) in [(item.code, text[item.start : item.end]) for item in document.problems]
    assert all(item.breaks is Breaks.JSON for item in document.problems)


def test_every_code_has_a_case_here_or_under_hardness() -> None:
    assert {case[1] for case in [*FATAL, *LENIENT]} | {Code.TOO_DEEP} == set(Code)
    assert set(_TABLE) == set(Code)


def test_valid_json_that_deepspeed_rejects_is_still_json() -> None:
    assert parse('{"a": 1, "a": 2}').is_strict_json
    assert parse('{"a": 1e400}').is_strict_json


def test_messages_show_the_text_in_hand_and_no_more_of_it_than_helps() -> None:
    (found,) = [item for item in parse('{"a": ' + "9" * 5000 + "}").problems if item.is_fatal]
    assert len(found.message) < 120
    (found,) = [item for item in parse('{"lr": tru, "b": 2}').problems if item.is_fatal]
    assert found.message == "tru has no quotes, so DeepSpeed reads the rest of the line as one string"


def test_half_typed_text_keeps_the_values_around_it() -> None:
    assert parse('{"a": tru, "b": 2}').value() == {"a": "tru", "b": 2}
    assert parse('{"a": , "b": 2}').value() == {"b": 2}
    assert parse('{\n  "a":\n  "b": 2\n}').value() == {"b": 2}
    assert parse('{"z": {"stage": 2, "x": [1, 2], "b": 3').value() == {"z": {"stage": 2, "x": [1, 2], "b": 3}}
    assert parse('{"a" {"b": 1}, "c": 2}').value() == {"a": {"b": 1}, "c": 2}
    assert parse('{\n"a": "au\n"b": 2}').value() == {"a": "au", "b": 2}
    assert parse('{"a": [1, fal], "b": 2}').value() == {"a": [1, "fal"], "b": 2}


def test_what_deepspeed_takes_as_text_stays_text() -> None:
    assert parse('{\n"a": tru,\n"b": 2\n}').value() == {"a": "tru,", "b": 2}


def test_duplicates_name_both_keys() -> None:
    document = parse('{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "a": 4}')
    assert [(pair.first.start, pair.again.start, pair.again.name) for pair in document.duplicates] == [
        (15, 23, "c"),
        (15, 31, "c"),
        (1, 40, "a"),
    ]


def test_the_layout_of_a_text_is_told() -> None:
    assert [
        parse(text).indent for text in ('{\n\t"a": 1\n}', '{\n  "a": {\n    "b": 1}}', "{}", "a: {\n   b: 1\n}")
    ] == [*("\t", "  ", "    ", "   ")]
    assert [parse(text).newline for text in ("{}", "{\r\n}", "{\r}", "a: 1\r\nb: 2\r\nc: 3\n")] == [
        *("\n", "\r\n", "\r", "\r\n")
    ]


def test_parts_of_a_member_have_exact_places() -> None:
    text = '{ "a" : [1 , 2] , b: {"c"} }'
    root = parse(text).root
    assert root is not None
    first, second = list(root)  # type: ignore[arg-type]
    assert (first.start, first.end, first.colon, first.comma) == (2, 15, 6, 16)
    assert first.node.items[0].raw == "1"
    assert (first.node.comma(0), first.node.comma(1)) == (11, None)
    assert (second.key.raw, second.colon, second.comma) == ("b", 19, None)
    assert (second.node.member(0).colon, second.node.member(0).node) == (None, None)
    assert (second.node.inner_start, second.node.inner_end) == (22, 25)
