from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.facts.compile import records
from dsmigrate.facts.sources import FactsError

from .test_compile import SPAN, WRITTEN, sources

READ = {"from": "0.9.0", "type": ["string"], "validated": "read", "source": "deepspeed/runtime/config.py"}
TEXT = {**WRITTEN, "type": "string"}


def spans(prose: dict[str, Any], *derived: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = records(sources({"a": prose}, {"a": list(derived)}))["part"]["a"]["spans"]
    return found


def test_a_fact_that_came_with_a_release_cuts_the_span() -> None:
    prose = {**WRITTEN, "minimum": 1, "earlier": [{"until": "0.19.6", "none": ["minimum"]}]}
    before, after = spans(prose, SPAN)
    assert (before["from"], after["from"]) == ("0.9.0", "0.19.6")
    assert "minimum" not in before
    assert after["minimum"] == 1


def test_no_span_is_cut_where_one_begins_or_the_key_is_gone() -> None:
    prose = {**WRITTEN, "earlier": [{"until": "0.12.0", "auto": "config-error"}]}
    assert [one["from"] for one in spans(prose, SPAN, {**SPAN, "from": "0.12.0"})] == ["0.9.0", "0.12.0"]
    assert [one["from"] for one in spans(prose, SPAN, {"from": "0.11.0", "absent": True})] == ["0.9.0", "0.11.0"]


def test_what_changed_twice_is_told_for_each_stretch() -> None:
    conditions = [{"a": [3]}, {"a": [1, 2]}]
    prose = {
        **WRITTEN,
        "effective_when": {"a": [0]},
        "earlier": [
            {"until": "0.17.1", "effective_when": conditions[0]},
            {"until": "0.18.3", "effective_when": conditions[1]},
        ],
    }
    first, second, last = spans(prose, SPAN)
    assert [first["effective_when"], second["effective_when"]] == conditions
    assert "effective_when" not in last


def test_a_declared_key_has_them_as_well() -> None:
    prose = {**WRITTEN, "declared": True, "since": "0.9.0", "earlier": [{"until": "0.12.0", "type": "string"}]}
    found = records(sources({"a": prose}, {}))["part"]["a"]["spans"]
    assert [(one["from"], one["type"]) for one in found] == [("0.9.0", ["string"]), ("0.12.0", ["integer"])]


@pytest.mark.parametrize(
    ("older", "expected"),
    [(["x", "old"], ["x", "old"]), (["y", "x"], ["x", "y"]), (None, ["x", "y"])],
)
def test_the_code_of_an_older_release_knows_its_closed_list(older: list[str] | None, expected: list[str]) -> None:
    before = READ if older is None else {**READ, "enum": older}
    prose = {**TEXT, "enum": ["x", "y"], "values": {"x": "one", "y": "two"}}
    first, last = spans(prose, before, {**READ, "from": "0.12.0", "enum": ["y", "x"]})
    assert first.get("enum", []) == ([] if older is None else expected)
    assert last["enum"] == ["x", "y"]


@pytest.mark.parametrize(
    ("earlier", "says"),
    [
        ([{"minimum": 1}], "says in `earlier` what was different, and not until when"),
        ([{"until": "0.12.0", "minimun": 1}], "has unknown fields: minimun"),
    ],
)
def test_an_earlier_fact_must_be_complete(earlier: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(FactsError) as error:
        spans({**WRITTEN, "earlier": earlier}, SPAN)
    assert says in str(error.value)
