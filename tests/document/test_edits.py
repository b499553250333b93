"""Edits as a reader of the diff sees them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsmigrate.document import EditError, TextEdit, apply, parse
from dsmigrate.document.edits import Spelling, compose, insert, move, remove, rename, replace

COMMENTED = """{
  "a": 1, // one
  "z": {
    "stage": 2,  # two
    "off": {"device": "cpu"}
  },
  "b": [0.9, 0.95]
}
"""
BARE = "a: 1\nb: foo # x\nc: {\n  d: bar\n}\n"

Case = tuple[str, Callable[..., tuple[TextEdit, ...]], tuple[object, ...], str]

REFUSED: list[Case] = [
    (COMMENTED, insert, (("a",), 2), "a is there already"),
    (COMMENTED, insert, (("a", "b"), 2), "a is 1, not an object"),
    (COMMENTED, insert, (("b", "x"), 2), "b is not an object"),
    (COMMENTED, insert, (("b", 2), 2), "names no key"),
    (COMMENTED, insert, ((), 2), "names no key"),
    (COMMENTED, insert, (("x",), float("nan")), "cannot be written"),
    (COMMENTED, insert, (("x",), {1, 2}), "type set cannot be written"),
    (COMMENTED, insert, (("x",), Spelling("1, y: 2")), "does not allow this edit"),
    (COMMENTED, remove, (("x",),), "no x to remove"),
    (COMMENTED, remove, (("b", 7),), "no b\\[7\\] to remove"),
    (COMMENTED, remove, ((),), "root cannot be removed"),
    (COMMENTED, rename, (("a",), "z"), "z is there already"),
    (COMMENTED, rename, (("x",), "y"), "no key x"),
    (COMMENTED, replace, (("x",), 1), "no value x"),
    (COMMENTED, move, (("z",), ("z", "y")), "into itself"),
    (COMMENTED, move, (("x",), ("y",)), "no key x"),
    (COMMENTED, move, (("a",), ("b",)), "b is there already"),
    ('{"a": tru, "b": 2}', insert, (("c",), 1), "line 1: tru has no quotes"),
    ("{\n a: '''x\n            y'''\n}", rename, (("a",), "long"), "does not allow this edit"),
    ('{"a": 1}', replace, (("a",), Spelling("0x10\n")), "something else than strict JSON|does not allow"),
    ('{"a": 1}', replace, (("a",), Spelling("1e999")), "does not allow this edit"),
    ('{"a": 1}', replace, (("a",), Spelling("NaN")), "something else than strict JSON|does not allow"),
    ('{"a": 1}', replace, (("a",), Spelling('{"x": 1, "x": 2}')), "does not allow this edit"),
    ('{"a": 1}', replace, (("a",), Spelling('{"x":' * 495 + "1" + "}" * 495)), "does not allow this edit"),
]

DONE: list[Case] = [
    (COMMENTED, insert, (("n",), 5), COMMENTED.replace("0.95]", '0.95],\n  "n": 5')),
    (COMMENTED, insert, (("z", "off", "p"), True), COMMENTED.replace('"cpu"', '"cpu", "p": true')),
    (COMMENTED, insert, (("z", "n"), Spelling("5e8")), COMMENTED.replace('"cpu"}', '"cpu"},\n    "n": 5e8')),
    (
        COMMENTED,
        insert,
        (("x", "y", "z"), [1, 2]),
        COMMENTED.replace("0.95]", '0.95],\n  "x": {\n    "y": {\n      "z": [1, 2]\n    }\n  }'),
    ),
    (COMMENTED, remove, (("b",),), COMMENTED.replace('  },\n  "b": [0.9, 0.95]\n', "  }\n")),
    (COMMENTED, remove, (("a",),), COMMENTED.replace('  "a": 1, // one\n', "")),
    (COMMENTED, remove, (("z", "off"),), COMMENTED.replace('2,  # two\n    "off": {"device": "cpu"}', "2  # two")),
    (COMMENTED, remove, (("z", "off", "device"),), COMMENTED.replace('"device": "cpu"', "")),
    (COMMENTED, remove, (("b", 0),), COMMENTED.replace("0.9, ", "")),
    (COMMENTED, remove, (("b", 1),), COMMENTED.replace(", 0.95", "")),
    (COMMENTED, rename, (("z", "stage"), "a.b"), COMMENTED.replace("stage", "a.b")),
    (COMMENTED, replace, (("z", "stage"), 3), COMMENTED.replace("2,", "3,")),
    (COMMENTED, replace, (("a",), {"x": 1}), COMMENTED.replace('"a": 1', '"a": {\n    "x": 1\n  }')),
    (
        COMMENTED,
        move,
        (("a",), ("z", "a")),
        COMMENTED.replace('  "a": 1, // one\n', "").replace('"cpu"}', '"cpu"},\n    "a": 1 // one'),
    ),
    (BARE, insert, (("e",), "x"), BARE + 'e: "x"\n'),
    (BARE, insert, (("two words",), 1), BARE + '"two words": 1\n'),
    (BARE, remove, (("b",),), BARE.replace("b: foo # x\n", "")),
    (BARE, replace, (("b",), 3), BARE.replace("foo # x", "3")),
    (BARE, move, (("b",), ("c", "b")), 'a: 1\nc: {\n  d: bar\n  b: "foo # x"\n}\n'),
    ("{}", insert, (("a",), 1), '{\n    "a": 1\n}'),
    ("", insert, (("a", "b"), 1), '{\n    "a": {\n        "b": 1\n    }\n}\n'),
    ("# why", insert, (("a",), 1), '# why\n{\n    "a": 1\n}\n'),
    ('{"a": { }}', insert, (("a", "b"), 1), '{"a": { "b": 1 }}'),
    ('{\n  "a": {\n    // c\n  }\n}', insert, (("a", "b"), 1), '{\n  "a": {\n    // c\n    "b": 1\n  }\n}'),
    ('{\n\t"a": 1,\n\t"b": 2, // k\n}\n', insert, (("c",), 1), '{\n\t"a": 1,\n\t"b": 2, // k\n\t"c": 1,\n}\n'),
    ('{\r\n  "a":1\r\n}', insert, (("b",), "x"), '{\r\n  "a":1,\r\n  "b":"x"\r\n}'),
    ("{'a': 1}", insert, (("b",), 2), "{'a': 1, 'b': 2}"),
    ('{"a": 1, "b": 2}', remove, (("a",),), '{"b": 2}'),
    ('{"a": 1, "b": 2}', remove, (("b",),), '{"a": 1}'),
    ('{ "a": 1 }', remove, (("a",),), "{}"),
    ('{\n  "a": 1\n}\n', remove, (("a",),), "{}\n"),
    ('{\n  // above\n  "a": 1\n}\n', remove, (("a",),), "{\n  // above\n}\n"),
    ('{\n "a": 1\n ,"b": 2\n}', remove, (("b",),), '{\n "a": 1\n}'),
    ('{\n "a": 1, // keep\n "b": 2 // go\n}', remove, (("b",),), '{\n "a": 1 // keep\n}'),
    ('{"a":"x" "b":"y" "c":"z"}', replace, (("a",), 1), '{"a":1, "b":"y" "c":"z"}'),
    ('{"a": 1, "a": 2}', remove, (("a",),), '{"a": 1}'),
    ('{"a": {"b": 1}}', move, (("a", "b"), ("b",)), '{"a": {}, "b": 1}'),
    ('{"a": 5e8, "c": 1}', move, (("a",), ("b", "a")), '{"c": 1, "b": {"a": 5e8}}'),
    ('{"a": 5e8}', move, (("a",), ("b",)), '{\n    "b": 5e8\n}'),
]


@pytest.mark.parametrize(("text", "function", "arguments", "message"), REFUSED)
def test_what_cannot_be_done_is_refused(
    text: str, function: Callable[..., tuple[TextEdit, ...]], arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(EditError, match=message):
        function(parse(text), *arguments)


@pytest.mark.parametrize(("text", "function", "arguments", "expected"), DONE)
def test_what_is_done_follows_the_layout(
    text: str, function: Callable[..., tuple[TextEdit, ...]], arguments: tuple[object, ...], expected: str
) -> None:
    assert apply(text, function(parse(text), *arguments)) == expected


def test_a_member_comes_behind_the_one_named() -> None:
    edits = insert(parse(COMMENTED), ("n",), 5, after="a")
    assert apply(COMMENTED, edits) == COMMENTED.replace("// one", '// one\n  "n": 5,')
    with pytest.raises(EditError, match="no key 'x' to insert behind"):
        insert(parse(COMMENTED), ("n",), 5, after="x")


def test_either_of_two_equal_keys_can_be_removed() -> None:
    document = parse('{"a": 1, "a": 2}')
    first = document.duplicates[0].first
    member = next(member for _, member, _ in document.walk() if member is not None and member.start == first.start)
    assert apply(document.text, remove(document, ("a",), members=[member])) == '{"a": 2}'


def test_edits_are_applied_by_place_and_never_overlap() -> None:
    assert apply("abc", [TextEdit(2, 3, "C"), TextEdit(0, 1, "A"), TextEdit(1, 1, "-"), TextEdit(1, 1, "+")]) == "A-+bC"
    with pytest.raises(EditError, match="overlap at 1"):
        apply("abc", [TextEdit(0, 2, ""), TextEdit(1, 3, "")])
    for edit in (TextEdit(-1, 0, ""), TextEdit(2, 1, ""), TextEdit(0, 4, "")):
        with pytest.raises(EditError, match="no range"):
            apply("abc", [edit])


def test_two_rounds_of_edits_become_one() -> None:
    first = [TextEdit(1, 3, ""), TextEdit(5, 5, "XY")]
    second = [TextEdit(0, 2, "_"), TextEdit(4, 6, ""), TextEdit(6, 6, "!")]
    once = compose("abcdefg", first, second)
    assert apply("abcdefg", once) == apply(apply("abcdefg", first), second)
