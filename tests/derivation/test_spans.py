from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.derivation.spans import at, expand, merge

RELEASES = ["0.9.0", "0.9.5", "0.10.0", "0.10.1", "0.11.0"]
FACTS = st.fixed_dictionaries(
    {"type": st.sampled_from([["integer"], ["boolean"]])}, optional={"default": st.sampled_from([None, 1, True])}
)
HISTORY = st.fixed_dictionaries(
    {release: st.dictionaries(st.sampled_from(["a", "a.b", "c"]), FACTS) for release in RELEASES}
)


def test_a_span_stands_only_where_facts_change() -> None:
    per_release = {
        "0.9.0": {"a": {"default": 1}},
        "0.9.5": {"a": {"default": 1}},
        "0.10.0": {"a": {"default": 2}},
        "0.10.1": {},
        "0.11.0": {"a": {"default": 2}, "b": {"rejected": True}},
    }
    assert merge(per_release, RELEASES) == {
        "a": [
            {"from": "0.9.0", "default": 1},
            {"from": "0.10.0", "default": 2},
            {"from": "0.10.1", "absent": True},
            {"from": "0.11.0", "default": 2},
        ],
        "b": [{"from": "0.11.0", "rejected": True}],
    }


def test_releases_are_compared_as_versions_not_as_text() -> None:
    spans = [{"from": "0.9.0", "default": 1}, {"from": "0.10.0", "default": 2}]
    assert at(spans, "0.9.5") == {"default": 1}
    assert at(spans, "0.11.0") == {"default": 2}


def test_a_key_is_absent_before_its_first_span_and_in_absent_spans() -> None:
    spans = [{"from": "0.9.5", "default": 1}, {"from": "0.10.0", "absent": True}]
    assert [at(spans, release) for release in RELEASES] == [None, {"default": 1}, None, None, None]


@given(HISTORY)
def test_spans_tell_the_facts_of_every_release(per_release: dict[str, dict[str, dict[str, object]]]) -> None:
    assert expand(merge(per_release, RELEASES), RELEASES) == per_release


@given(HISTORY)
def test_neighbouring_spans_differ(per_release: dict[str, dict[str, dict[str, object]]]) -> None:
    for spans in merge(per_release, RELEASES).values():
        facts = [{name: value for name, value in span.items() if name != "from"} for span in spans]
        assert all(first != second for first, second in pairwise(facts))
        assert facts[0] != {"absent": True}
