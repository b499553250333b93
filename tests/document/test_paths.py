from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import Path, PathError, parse, parse_path, render_path
from tests.document import samples, texts

KNOWN: list[tuple[Path, str]] = [
    ((), ""),
    (("zero_optimization", "stage"), "zero_optimization.stage"),
    (("optimizer", "params", "betas", 0), "optimizer.params.betas[0]"),
    ((0, "a", 12), "[0].a[12]"),
    (("a", "b.c", "d e"), 'a."b.c"."d e"'),
    (("", 'q"'), '""."q\\""'),
    (("0", "x-y", "ünï"), "0.x-y.ünï"),
    (("-x",), '"-x"'),
]


@pytest.mark.parametrize(("path", "text"), KNOWN)
def test_known_paths_and_their_text(path: Path, text: str) -> None:
    assert render_path(path) == text
    assert parse_path(text) == path


@texts.GENERAL
@given(st.lists(st.text() | st.integers(0, 10**6)).map(tuple))
def test_any_path_comes_back(path: Path) -> None:
    assert parse_path(render_path(path)) == path


@pytest.mark.parametrize(
    ("text", "offset"),
    [(".a", 0), ("a.", 1), ("a..b", 1), ("a[x]", 1), ("a[-1]", 1), ('"a', 0), ("a b", 1), ('a"b"', 1)],
)
def test_text_that_is_no_path_is_refused_with_its_place(text: str, offset: int) -> None:
    with pytest.raises(PathError, match="is no path") as raised:
        parse_path(text)
    assert raised.value.offset == offset


def test_paths_lead_to_ranges() -> None:
    document = parse(samples.CONFIG)
    text = document.text

    def part(path: str, which: str) -> str | None:
        found = document.range_of(parse_path(path), which)  # type: ignore[arg-type]
        return None if found is None else text[found[0] : found[1]]

    assert part("zero_optimization.stage", "key") == '"stage"'
    assert part("zero_optimization.stage", "value") == "3"
    assert part("zero_optimization.stage", "member") == '"stage": 3'
    assert part("optimizer.params.betas[1]", "value") == "0.999"
    assert part("optimizer.params.betas[1]", "member") == "0.999"
    assert part("optimizer.params.betas[1]", "key") is None
    assert part("optimizer.params.betas[2]", "value") is None
    assert part("optimizer.nothing", "value") is None
    assert part("optimizer.type.nothing", "member") is None
    assert part("", "value") == text.rstrip("\n")


def test_of_equal_keys_the_last_with_a_value_counts() -> None:
    document = parse('{"a": 1, "a": 2, "a": }')
    member = document.member_at(("a",))
    assert member is not None
    assert (member.index, member.raw) == (1, '"a": 2')
    assert document.value() == {"a": 2}


def test_every_node_is_found_by_its_path() -> None:
    for text in samples.WHOLE.values():
        document = parse(text)
        if document.duplicates:
            continue
        for path, member, node in document.walk():
            assert document.node_at(path) == node
            if member is not None:
                assert document.member_at(path) == member
