"""A number is written as the person wrote it, wherever the language reads that as the same number."""

from __future__ import annotations

import ast
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.convert.yaml_tree import read
from dsmigrate.document import parse
from dsmigrate.document.numbers import in_json, in_python, in_yaml, spelled, whole

TEXTS = st.from_regex(r"[-+]?[0-9]{0,3}(_[0-9]{1,3})?(\.[0-9]{0,3})?([eE][-+]?[0-9]{1,2})?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "json", "yaml", "python"),
    [
        ("2e-5", "2e-5", "2.0e-5", "2e-5"),
        ("5e8", "5e8", "5.0e+8", "5e8"),
        ("1_000", "1000", "1_000", "1_000"),
        ("1.0", "1.0", "1.0", "1.0"),
        ("1.", "1.0", "1.", "1."),
        (".5", "0.5", "0.5", "0.5"),
        ("2E-05", "2E-05", "2.0e-05", "2E-05"),
        ("1.50", "1.50", "1.50", "1.50"),
        ("+5", "5", "+5", "+5"),
    ],
)
def test_a_number_keeps_the_spelling_that_a_language_reads(text: str, json: str, yaml: str, python: str) -> None:
    value = float(text)
    number = spelled(int(value) if value.is_integer() else value, text)
    assert isinstance(number, (int, float))
    assert (in_json(number), in_yaml(number), in_python(number)) == (json, yaml, python)


@given(TEXTS)
def test_what_is_written_is_the_same_number_to_its_reader(text: str) -> None:
    try:
        value = float(text)
    except ValueError:
        return
    for plain in {value, int(value) if value.is_integer() else value}:
        number = copy.deepcopy(spelled(plain, text))
        assert isinstance(number, (int, float))
        assert number == plain
        assert parse(f'{{"a": {in_json(number)}}}').value() == {"a": plain}
        assert read(f"a: {in_yaml(number)}\n").value == {"a": plain}
        assert ast.literal_eval(in_python(number)) == plain == ast.literal_eval(repr(number))


def test_a_text_that_says_something_else_is_left_out() -> None:
    for value, text in ((2, "3"), (True, "1"), ("1", "1"), (1, "one"), (None, "0")):
        assert spelled(value, text) is value


def test_a_whole_number_can_be_asked_for() -> None:
    assert [in_python(whole(spelled(8, text))) for text in ("8", "8.0", "8e0", "0_8")] == ["8"] * 4
    assert in_python(whole(spelled(1000, "1_000"))) == "1_000"
