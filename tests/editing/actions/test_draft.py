from __future__ import annotations

from dsmigrate.document import apply, parse
from dsmigrate.editing.actions.draft import Step, move, put, remove, rename, started, why_not

TEXT = '{\n  "a": 1,\n  "b": {"c": 2},\n  "d": 3\n}\n'


def test_the_edits_of_a_draft_are_edits_of_its_original() -> None:
    steps = [
        remove(("a",), "a goes."),
        put(("b", "e"), 5),
        rename(("d",), "f"),
        put(("f",), 4),
        move(("f",), ("b", "f")),
    ]
    draft = started(parse(TEXT)).after(steps)
    assert draft.document.text == '{\n  "b": {"c": 2, "e": 5, "f": 4}\n}\n'
    assert apply(TEXT, draft.edits) == draft.document.text
    assert draft.done == ("a goes.",)


def test_a_value_that_is_there_is_not_written_again() -> None:
    assert started(parse(TEXT)).after([put(("a",), 1)]).edits == ()
    assert started(parse(TEXT)).after([put(("a",), 1.0)]).document.value() == {"a": 1.0, "b": {"c": 2}, "d": 3}


def test_offsets_of_unknown_values_move_with_the_text() -> None:
    places = frozenset({TEXT.index("1"), TEXT.index("3")})
    draft = started(parse(TEXT), places).after([put(("b", "c"), 20000), remove(("a",))])
    assert [draft.document.text[offset] for offset in draft.unknown] == ["3"]
    assert draft.unknown_before == places


def test_a_step_without_edits_still_tells() -> None:
    draft = started(parse(TEXT)).after([Step(lambda _: (), "nothing to do.")])
    assert (draft.edits, draft.done) == ((), ("nothing to do.",))


def test_broken_texts_and_equal_keys_are_not_edited() -> None:
    assert why_not(parse('{"a": 1}')) == ""
    assert why_not(parse("")) == ""
    assert why_not(parse("[]")) == "the config is not an object"
    assert why_not(parse('{"a": 1, "a": 2}')) == "the text cannot be edited before no key occurs twice in an object"
    assert why_not(parse('{\n"a": ')).startswith("the text cannot be edited before it is complete; line ")
