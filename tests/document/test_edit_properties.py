"""Edits of any readable text: they do what was asked for, and leave every other byte alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from dsmigrate.document import Document, Member, Node, Object, Path, Scalar, parse
from dsmigrate.document.edits import TextEdit, apply, insert, move, remove, rename, replace
from dsmigrate.document.errors import EditError
from tests.document import samples, texts

pytestmark = pytest.mark.broad

VALUES = [1, 2.5, True, None, "text", 'q"\\', {}, {"x": 1, "y": {"z": [1, {"w": "v"}]}}, [], [0.9, 0.95], "\ud800"]
NAMES = ["new", "a.b", "two words", "", "ключ", 'q"', "a"]


def readable(text: str) -> Document | None:
    document = parse(text)
    return document if document.is_readable and isinstance(document.root, Object) else None


def members(document: Document) -> list[tuple[Path, Member]]:
    return [(path, member) for path, member, _ in document.walk() if member is not None]


def objects(document: Document) -> list[tuple[Path, Object]]:
    return [(path, node) for path, _, node in document.walk() if isinstance(node, Object)]


def raws(document: Document, *, without: Path) -> dict[Path, str]:
    """Return the text of every scalar member beside one."""
    return {
        path: member.raw
        for path, member in members(document)
        if path[: len(without)] != without and isinstance(member.node, Scalar) and not has_index(path)
    }


def has_index(path: Path) -> bool:
    return any(isinstance(part, int) for part in path)


def comments_of(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in document.comments]


def words_of(comment: str) -> str:
    """Return what a comment says, in whatever form: one before another on a line becomes a block."""
    return " ".join(comment.strip("#/* ").split())


def outcome(document: Document, edits: tuple[TextEdit, ...]) -> Document:
    result = parse(apply(document.text, edits))
    assert result.is_readable, (document.text, edits)
    assert result.has_bom == document.has_bom
    return result


def check_insert(document: Document, chance: random.Random) -> None:
    path, target = chance.choice(objects(document))
    after = chance.choice([None, *(member.name for member in target)])
    name, value = chance.choice(NAMES), chance.choice(VALUES)
    if target.get(name) is not None:
        with pytest.raises(EditError, match="is there already"):
            insert(document, (*path, name), value)
        return
    edits = insert(document, (*path, name), value, after=after)
    result = outcome(document, edits)
    expected = document.value()
    inner = expected
    for part in path:
        inner = inner[part]  # type: ignore[index]
    inner[name] = value  # type: ignore[index]
    assert result.value() == expected
    made = result.node_at(path)
    assert isinstance(made, Object)
    names = [member.name for member in target]
    names.insert(names.index(after) + 1 if after is not None else len(names), name)
    assert [member.name for member in made] == names
    assert comments_of(result) == comments_of(document)
    assert raws(result, without=(*path, name)) == raws(document, without=(*path, name))
    for edit in edits:
        assert document.text[edit.start : edit.end].strip(" \t\r\n") == ""


def check_remove(document: Document, chance: random.Random) -> None:
    path, member = chance.choice(members(document))
    edits = remove(document, path)
    result = outcome(document, edits)
    assert result.member_at(path) is None
    assert raws(result, without=path) == raws(document, without=path)
    line_end = max(document.lines.line_range(document.lines.line_of(member.end))[1], member.comma or 0)
    touched = {
        (start, end) for start, end in document.comments if any(edit.start < end and start < edit.end for edit in edits)
    }
    assert all(member.start < start <= line_end for start, _ in touched), (document.text, path)
    kept = [document.text[start:end] for start, end in document.comments if (start, end) not in touched]
    assert comments_of(result) == kept
    assert all(edit.text == "" for edit in edits)


def check_change(document: Document, chance: random.Random) -> None:
    path, member = chance.choice(members(document))
    value, name = chance.choice(VALUES), chance.choice(NAMES)
    edits = replace(document, path, value)
    result = outcome(document, edits)
    node = member.node
    assert node is not None
    assert [edit.start for edit in edits] == [node.start]
    assert document.text[node.end : edits[0].end].strip() == ""
    assert raws(result, without=path) == raws(document, without=path)
    made = result.node_at(path)
    assert made is not None
    assert made.value() == value
    parent = document.node_at(path[:-1])
    assert isinstance(parent, Object)
    if parent.get(name) is None:
        edits = rename(document, path, name)
        result = outcome(document, edits)
        assert [(edit.start, edit.end) for edit in edits] == [document.range_of(path, "key")]
        moved = result.node_at((*path[:-1], name))
        assert moved is not None
        assert moved.raw == node.raw


def check_move(document: Document, chance: random.Random) -> None:
    source, member = chance.choice(members(document))
    path, target = chance.choice(objects(document))
    name = chance.choice([str(source[-1]), "new"])
    goal = (*path, *chance.choice([(), (), ("made",), ("made", "deeper")]), name)
    if goal[: len(source)] == source or document.node_at(goal) is not None or target.get("made") is not None:
        return
    edits = move(document, source, goal)
    result = outcome(document, edits)
    made = result.node_at(goal)
    assert made is not None
    assert isinstance(member.node, Node)
    assert made.value() == member.node.value()
    assert sorted(map(words_of, comments_of(result))) == sorted(map(words_of, comments_of(document)))


CHECKS = [check_insert, check_remove, check_change, check_move]


def check(text: str, chance: random.Random) -> None:
    document = readable(text)
    if document is None or not members(document):
        return
    for function in CHECKS:
        try:
            function(document, chance)
        except EditError:
            assert "'''" in text, text  # such a string means something else in another column


@pytest.mark.parametrize("text", samples.WHOLE.values(), ids=samples.WHOLE)
def test_edits_of_samples(text: str) -> None:
    for seed in range(20):
        check(text, texts.seeded(seed))


@texts.GENERAL
@given(texts.SEEDS)
def test_edits_of_any_text(chance: random.Random) -> None:
    check(texts.almost_config(chance), chance)


@pytest.mark.skipif(not texts.corpus(), reason=texts.NO_CORPUS)
def test_edits_of_real_configs() -> None:
    chance = texts.seeded(1)
    for text in texts.corpus().values():
        check(text, chance)
