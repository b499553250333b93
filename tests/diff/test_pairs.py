"""Real pairs: every changed key is explained, and what is only laid out otherwise is no change."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from dsmigrate.diff.model import Severity
from dsmigrate.document import Document

from .pairs import NO_PAIRS, Pair, pairs

pytestmark = pytest.mark.skipif(not pairs(), reason=NO_PAIRS)
PAIRS = [pytest.param(pair, id=pair.name) for pair in pairs()]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_changed_key_is_explained(pair: Pair) -> None:
    result = pair.compared()
    told = {path for said in result.explained for path in said.paths}
    assert set(result.changes) - told == set()
    assert all(said.message.strip() for said in result.explained)
    restated = [said for said in result.explained if said.code == "DF999" and said.message.startswith("`")]
    assert [said.paths for said in restated] == [], "only the values are told"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_change_of_layout_alone_is_none(pair: Pair) -> None:
    result = pair.compared()
    if _data(pair.old) == _data(pair.new):
        assert result.verdict == "No semantic change"
        assert result.is_same
        assert not result.changes
    else:
        assert result.changes


@pytest.mark.parametrize("pair", PAIRS)
def test_back_is_the_mirror_of_there(pair: Pair) -> None:
    there, back = pair.compared(), pair.compared(mirrored=True)
    assert there.changes.keys() == back.changes.keys()
    for path, change in there.changes.items():
        other = back.changes[path]
        assert (change.old, change.new, change.differs) == (other.new, other.old, other.differs)
        assert (change.old_spot, change.new_spot) == (other.new_spot, other.old_spot)
    assert there.is_same is back.is_same


def test_all_effects_appear(capsys: pytest.CaptureFixture[str]) -> None:
    results = [pair.compared() for pair in pairs()]
    effects = Counter(effect.value for result in results for said in result.explained for effect in said.effects)
    severities = Counter(said.severity.value for result in results for said in result.explained)
    with capsys.disabled():
        same = sum(result.is_same for result in results)
        print(f"\n{len(results)} pairs, {same} without semantic change")
        print(f"changes by effect: {dict(effects.most_common())}")
        print(f"changes by severity: {dict(severities.most_common())}")
    assert len(effects) == 8
    assert len(severities) == len(Severity)


def _data(document: Document) -> str:
    """Return what a config says, whatever its layout; one side of a pair is an empty file."""
    return json.dumps(None if document.root is None else document.root.value(), sort_keys=True)
