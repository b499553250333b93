from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.facts import checks
from dsmigrate.facts.compile import newest, records
from dsmigrate.facts.sources import FactsError, Sources

WRITTEN = {
    "affects": ["speed"],
    "summary": "Does a thing.",
    "doc": "How it does it.",
    "type": "integer",
    "source": "deepspeed/runtime/config.py",
}
SPAN = {
    "from": "0.9.0",
    "type": ["integer"],
    "default": 1,
    "validated": "pydantic",
    "source": "deepspeed/runtime/config.py",
}


def sources(prose: dict[str, Any], spans: dict[str, Any]) -> Sources:
    return Sources(
        releases=("0.9.0", "0.19.8"),
        prose={"part": prose},
        spans={"part": spans},
        types={},
        derived_types={},
        consumers={},
        snippets={},
    )


@pytest.mark.parametrize(
    ("prose", "spans", "says"),
    [
        ({}, {"a": [SPAN]}, "part: a: has no documentation"),
        ({"a": WRITTEN}, {}, "part: a: is documented, but no release knows it"),
        ({"a": {**WRITTEN, "declared": True}}, {}, "part: a: is declared without `since`"),
        ({"a": {**WRITTEN, "sumary": "x"}}, {"a": [SPAN]}, "part: a: has unknown fields: sumary"),
        ({"a": {**WRITTEN, "minimum": 1}}, {"a": [{**SPAN, "minimum": 0}]}, "minimum is documented as 1, the code"),
        ({"a": {**WRITTEN, "type": "string"}}, {"a": [SPAN]}, "type is documented as ['string'], the code"),
        ({"a.b": WRITTEN}, {"a.b": [SPAN]}, "keys whose section is not documented: a"),
    ],
)
def test_documentation_and_code_must_agree(prose: dict[str, Any], spans: dict[str, Any], says: str) -> None:
    with pytest.raises(FactsError) as error:
        records(sources(prose, spans))
    assert says in str(error.value)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(FactsError) as error:
        records(sources({}, {"a": [SPAN], "b": [SPAN]}))
    assert str(error.value).splitlines() == ["part: a: has no documentation", "part: b: has no documentation"]


def test_the_code_gives_the_facts_and_the_documentation_the_rest() -> None:
    read = {"from": "0.9.0", "type": None, "validated": "read", "source": "deepspeed/runtime/config.py"}
    prose = {**WRITTEN, "enum": [1, 2], "values": {"1": "one", "2": "two"}, "default": 2, "unit": "steps"}
    found = records(sources({"a": prose}, {"a": [read]}))["part"]["a"]
    assert found["spans"] == [
        {
            "from": "0.9.0",
            "validated": "read",
            "source": "deepspeed/runtime/config.py",
            "type": ["integer"],
            "default": 2,
            "enum": [1, 2],
        }
    ]
    assert found["unit"] == "steps"


def test_a_declared_key_lives_from_since_until() -> None:
    prose = {**WRITTEN, "declared": True, "since": "0.10.0", "until": "0.19.8"}
    spans = records(sources({"a": prose}, {}))["part"]["a"]["spans"]
    assert [span["from"] for span in spans] == ["0.10.0", "0.19.8"]
    assert spans[0]["validated"] == "elsewhere"
    assert newest(spans) is None


def test_a_null_default_widens_the_type_unless_null_cannot_be_written() -> None:
    span = {**SPAN, "default": None, "validated": "read"}
    [open_one] = records(sources({"a": WRITTEN}, {"a": [span]}))["part"]["a"]["spans"]
    [absent] = records(sources({"a": {**WRITTEN, "absent_only": True}}, {"a": [span]}))["part"]["a"]["spans"]
    assert open_one["type"] == ["integer", "null"]
    assert absent["type"] == ["integer"]
    assert "default" not in absent


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"summary": "x" * 120 + "."}, "a summary of 121 characters"),
        ({"summary": "Whether to do a thing."}, "a summary that opens with"),
        ({"summary": "Does a thing"}, "a summary that is no sentence"),
        ({"doc": " \n"}, "no doc"),
        ({"doc": "Does a thing.\n"}, "a doc that repeats the summary"),
        ({"source": []}, "no source"),
        ({"related": ["b"]}, "refers to b, which is no key"),
        ({"effective_when": {"b": [1]}}, "refers to b, which is no key"),
        ({"effective_when_any": [{"b": []}]}, "refers to b, which is no key"),
        ({"auto": "sometimes"}, "unknown auto sometimes"),
        ({"enum": [1, 2]}, "a closed list whose values are not explained"),
        ({"enum": [1, 2], "values": {"1": "one"}}, "values without a meaning: 2"),
        ({"type": "list"}, "unknown type ['list']"),
        ({"type": "array"}, "a list without `items`"),
        ({"memory": [{"of": "air", "is": "thin"}]}, "memory of 'air'"),
        ({"memory": [{"of": "weights", "is": "here", "twice": "b"}]}, "memory that depends on what is no key"),
        ({"affects": []}, "affects nothing that is said"),
        ({"affects": ["weather"]}, "affects weather"),
        ({"affects": ["speed", "none"]}, "affects something and nothing"),
        ({"dead": "Nothing reads it."}, "affects something and nothing"),
    ],
)
def test_documentation_that_is_not_good_enough_is_named(change: dict[str, Any], says: str) -> None:
    span = {"from": "0.9.0", "type": None, "validated": "read", "source": "deepspeed/runtime/config.py"}
    assert checks.problems(records(sources({"a": WRITTEN}, {"a": [span]}))) == []
    [problem] = checks.problems(records(sources({"a": {**WRITTEN, **change}}, {"a": [span]})))
    assert problem.startswith(f"a: {says}")
