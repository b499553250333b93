"""What must hold for any pair: nothing between equal configs, a mirror back, releases that compose."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from dsmigrate.diff import compare_views
from dsmigrate.diff.meaning import same
from dsmigrate.diff.model import Kind, Severity

from . import generate
from .examples import view
from .pairs import pairs

pytestmark = pytest.mark.broad

COUNT = 200
EVERY = list(generate.pairs(COUNT, seed=20))
CHAINS = [
    ("0.9.0", "0.14.5", "0.19.8"),
    ("0.12.3", "0.16.4", "0.19.2"),
    ("0.15.1", "0.15.2", "0.17.1"),
    ("0.16.4", "0.16.5", "0.17.1"),
    ("0.19.2", "0.19.3", "0.19.8"),
    ("0.19.4", "0.19.5", "0.19.8"),
]
_MIRROR = {Kind.ADDED: Kind.REMOVED, Kind.REMOVED: Kind.ADDED, Kind.CHANGED: Kind.CHANGED, Kind.RENAMED: Kind.RENAMED}


@pytest.mark.parametrize("number", range(COUNT))
def test_a_config_has_no_difference_to_itself(number: int) -> None:
    for text in (EVERY[number].old, EVERY[number].new):
        result = compare_views(view(text), view(text))
        assert result.changes == {}
        assert result.explained == ()
        assert result.verdict == "No semantic change"


@pytest.mark.parametrize("number", [number for number in range(COUNT) if EVERY[number].neutral])
def test_edits_that_deepspeed_cannot_see_are_no_semantic_change(number: int) -> None:
    pair = EVERY[number]
    result = compare_views(view(pair.old), view(pair.new))
    assert result.is_same, (pair.old, pair.new, [said.message for said in result.explained])
    assert result.verdict.startswith("No semantic change")


@pytest.mark.parametrize("edit", generate.NEUTRAL, ids=lambda edit: edit.__name__)
def test_each_edit_that_deepspeed_cannot_see_is_tried(edit: object) -> None:
    changed = 0
    for number, base in itertools.product(range(20), generate.BASES):
        old = json.loads(json.dumps(base))
        new = json.loads(json.dumps(base))
        edit(new, random.Random(number))  # type: ignore[operator] # noqa: S311 - edits, not secrets
        changed += json.dumps(new) != json.dumps(old)
        result = compare_views(view(json.dumps(old)), view(json.dumps(new)))
        assert result.is_same, (old, new, [said.message for said in result.explained])
    assert changed > 5


@pytest.mark.parametrize("number", range(COUNT))
def test_back_is_the_mirror_of_there(number: int) -> None:
    old, new = view(EVERY[number].old), view(EVERY[number].new)
    there, back = compare_views(old, new), compare_views(new, old)
    assert there.changes.keys() == back.changes.keys()
    for path, change in there.changes.items():
        other = back.changes[path]
        assert other.kind is _MIRROR[change.kind]
        assert (change.old, change.new) == (other.new, other.old)
        assert (change.old_meant, change.new_meant) == (other.new_meant, other.old_meant)
        assert change.differs is other.differs
    quiet = [
        {path for said in result.explained if said.severity is Severity.NONE for path in said.paths}
        & set(result.changes)
        for result in (there, back)
    ]
    assert quiet[0] == quiet[1]


@pytest.mark.parametrize("number", range(0, COUNT, 8))
@pytest.mark.parametrize("releases", CHAINS, ids="-".join)
def test_releases_compose(number: int, releases: tuple[str, str, str]) -> None:
    text = EVERY[number].old
    sides = [view(text, version=version) for version in releases]
    first, second, whole = (compare_views(sides[one], sides[other]).changes for one, other in ((0, 1), (1, 2), (0, 2)))
    for path, change in whole.items():
        parts = [part[path] for part in (first, second) if path in part]
        assert parts, f"{path} differs over both steps and over neither"
        if change.differs:
            assert any(part.differs for part in parts), path
        assert same(change.old_meant, parts[0].old_meant) or len(parts) == 1
    for path in first.keys() | second.keys():
        if path in first and path in second:
            continue
        part = first.get(path) or second[path]
        if part.differs:
            assert path in whole, f"{path} differs over one step and not over both"


@pytest.mark.skipif(not pairs(), reason="no real pairs")
def test_real_configs_have_no_difference_to_themselves() -> None:
    for pair in pairs():
        for document in (pair.old, pair.new):
            result = compare_views(pair.view(document), pair.view(document))
            assert result.changes == {}
            assert result.verdict == "No semantic change"
