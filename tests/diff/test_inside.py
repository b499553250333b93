from __future__ import annotations

import pytest

from dsmigrate.diff.inside import inside


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (["a", "b"], ["a", "b", "c"], 'adds `"c"`'),
        (["a", "b"], ["a"], 'drops `"b"`'),
        (["a", "b"], ["a", "c", "d"], '`"b"` → `"c"`, adds `"d"`'),
        ([1, 2.0], [1.0, 2], ""),
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}, "`b.c` `2` → `3`"),
        ({"a": 1}, {"a": 1, "b": True}, "adds `b` `true`"),
        ([], list("abcdef"), 'adds `"a"`, adds `"b"`, adds `"c"`, adds `"d"`, 2 more'),
        (1, 2, ""),
        ([1], {"a": 1}, ""),
    ],
)
def test_the_differences_inside_are_told(old: object, new: object, says: str) -> None:
    assert inside(old, new) == says
