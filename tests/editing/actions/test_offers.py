from __future__ import annotations

import json

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions, outcome, resolve
from dsmigrate.rules import Settings

TEXT = """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2, "sub_group_size": 5, "overlap_comm": "auto"}
}
"""
INSIDE = TEXT.index("sub_group")


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (None, {"quickfix", "refactor.rewrite", "source.fixAll.dsmigrate"}),
        ([""], {"quickfix", "refactor.rewrite", "source.fixAll.dsmigrate"}),
        (["quickfix"], {"quickfix"}),
        (["refactor"], {"refactor.rewrite"}),
        (["refactor.rewrite"], {"refactor.rewrite"}),
        (["source"], {"source.fixAll.dsmigrate"}),
        (["source.fixAll"], {"source.fixAll.dsmigrate"}),
        (["source.fixAll.dsmigrate", "quickfix"], {"quickfix", "source.fixAll.dsmigrate"}),
        (["refactor.re", "source.organizeImports", "quick"], set()),
        ([], set()),
    ],
)
def test_kinds_limit_what_is_offered(kinds: list[str] | None, expected: set[str]) -> None:
    assert {action.kind for action in actions(View(parse(TEXT)), INSIDE, INSIDE, kinds=kinds)} == expected


def test_fixes_come_first_and_what_concerns_the_whole_file_last() -> None:
    names = [action.data[0] for action in actions(View(parse(TEXT), Settings(version="0.16.4")), INSIDE, INSIDE)]
    assert list(dict.fromkeys(names)) == [
        "fix",
        "suppress",
        "fix-all",
        "stage",
        "resolve-auto",
        "upgrade",
    ]


def test_an_action_survives_json() -> None:
    view = View(parse(TEXT))
    for action in actions(view, INSIDE, INSIDE):
        data = tuple(json.loads(json.dumps(action.data)))
        assert resolve(view, data) == outcome(view, action.data).edits


@pytest.mark.parametrize(
    "data",
    [
        (),
        ("nothing",),
        ("stage",),
        ("stage", "2"),
        ("stage", True),
        ("stage", 2, 3),
        ("fix", 0),
        (5,),
        ("upgrade", "newest"),
        ("upgrade", ""),
        ("stage", 7),
        ("precision", "fp8"),
        ("write-default", "a."),
        ("write-default", ""),
        ("remove-defaults", "a."),
        ("resolve-auto", "a."),
        ("use-auto", "a."),
        ("fix-code", "DS999"),
        ("suppress", 99, "DS401", "file"),
    ],
)
def test_data_of_no_action_gives_no_edits(data: tuple[str | int, ...]) -> None:
    done = outcome(View(parse(TEXT)), data)
    assert done.edits == ()
    assert done.left or data[0] in {"resolve-auto", "use-auto", "remove-defaults"}
