"""A document after edits is the document of the text after edits."""

from __future__ import annotations

import random

import pytest

from dsmigrate.document import Array, Document, Object, parse, reading, splicing
from dsmigrate.document.frames import NOTHING, Kept
from tests.document import samples, texts
from tests.document.outline import assert_same

EDITS = int(texts.EXPLORE or "3000")
FRIENDLY = ["", "", "1", "x", " ", "\n", '"z": 1, ', ", ", '{"q": [1]}', "true", ',\n"new": {"a": [1, 2]}', "// c\n"]


def sources() -> list[str]:
    return [*samples.ALL.values(), *texts.corpus().values()]


def random_edit(document: Document, chance: random.Random) -> tuple[int, int, str]:
    size = len(document.text)
    start = chance.randint(0, size)
    end = min(size, start + chance.choice([0, 0, 0, 0, 1, 1, 2, 3, 8, 30]))
    kind = chance.random()
    if kind < 0.6:
        return start, end, chance.choice(FRIENDLY)
    return start, end, chance.choice(samples.PIECES) if kind < 0.95 else texts.jumble(chance)


def test_random_edits_give_the_tree_of_a_fresh_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = texts.seeded(EDITS)
    whole = 0

    def read(text: str, kept: Kept = NOTHING) -> splicing.Tree:
        nonlocal whole
        whole += 1
        return reading.read(text, kept)

    monkeypatch.setattr(splicing, "read", read)
    done = 0
    while done < EDITS:
        kind = chance.random()
        text = samples.CONFIG if kind < 0.2 else texts.almost_config(chance)
        if 0.2 <= kind < 0.7:
            text = chance.choice(sources())
        document = parse(text)
        for _ in range(20):
            edited = document.edit(*random_edit(document, chance))
            assert_same(edited, parse(edited.text))
            done += 1
            root = edited.root
            if isinstance(root, Object | Array) and root.is_closed and chance.random() < 0.8:
                document = edited
    print(f"{done} edits, {done - whole} of them spliced")
    assert whole < 0.85 * done, "hardly anything was spliced"


def test_typing_a_config_and_taking_it_back() -> None:
    document = parse("")
    for offset, char in enumerate(samples.CONFIG):
        document = document.edit(offset, offset, char)
        assert_same(document, parse(document.text))
    for end in range(len(samples.CONFIG), 0, -1):
        document = document.edit(end - 1, end, "")
        assert_same(document, parse(document.text))


def test_an_edit_shares_what_it_does_not_touch() -> None:
    document = parse(samples.CONFIG)
    at = samples.CONFIG.index("3,")
    edited = document.edit(at, at + 1, "2222")
    before, after = document.node_at(("optimizer",)), edited.node_at(("optimizer",))
    assert before is not None
    assert after is not None
    assert after.shape is before.shape
    assert after.start == before.start + 3
    assert after.raw == before.raw
    assert edited.node_at(("zero_optimization", "stage")).value() == 2222  # type: ignore[union-attr]
    assert document.node_at(("zero_optimization", "stage")).value() == 3  # type: ignore[union-attr]


def test_an_edit_of_the_outermost_container_reads_none_of_those_in_it_again() -> None:
    document = parse(samples.CONFIG)
    for start, end, new in ((1, 1, " "), (1, 1, '"'), (0, 1, "")):
        edited = document.edit(start, end, new)
        assert_same(edited, parse(edited.text))
    opened = document.edit(document.text.index('"optimizer"'), document.text.index('"optimizer"'), '"new": {')
    assert_same(opened, parse(opened.text))
    before, after = document.node_at(("optimizer",)), opened.node_at(("new", "optimizer"))
    assert before is not None
    assert after is not None
    assert after.shape is before.shape


def test_an_edit_that_closes_a_container_early_is_not_spliced() -> None:
    document = parse('{"a": {"b": 1, "c": 2}, "d": 3}')
    edited = document.edit(13, 14, "}")
    assert_same(edited, parse(edited.text))
    assert not edited.is_readable


def test_an_edit_can_move_a_multi_line_string() -> None:
    document = parse("{\n  a: {x: 1}, b: '''\n                  y'''\n}")
    edited = document.edit(10, 10, "111")
    assert_same(edited, parse(edited.text))
    assert edited.value() != document.value()


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (2, 1), (0, 3)])
def test_a_range_outside_of_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="is no range of a text of 2 code points"):
        parse("{}").edit(start, end, "")
