"""Explanations of ZeRO and offload come to an end whatever stands on both sides, and mirror each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsmigrate.diff import Result, compare_views
from dsmigrate.diff.model import Effect, Severity
from tests.memory.values import CONFIGS, nested

from .examples import view

pytestmark = pytest.mark.broad

STAGES = st.tuples(st.integers(0, 3), st.integers(0, 3))
FACTS = st.sampled_from([(None, None), (8, 7 * 10**9), (1, 1), (3, 10**30)])


@settings(max_examples=150)
@given(CONFIGS, CONFIGS, STAGES, FACTS, st.sampled_from([None, "0.9.0", "0.16.4"]))
def test_any_values_on_both_sides(
    old: dict[str, Any],
    new: dict[str, Any],
    stages: tuple[int, int],
    facts: tuple[int | None, int | None],
    version: str | None,
) -> None:
    world_size, parameters = facts
    sides = [
        view(json.dumps(nested(flat, stage)), version=release, world_size=world_size, parameters=parameters)
        for flat, stage, release in ((old, stages[0], version), ({**old, **new}, stages[1], None))
    ]
    there, back = compare_views(*sides), compare_views(*reversed(sides))
    assert set(there.changes) == set(back.changes)
    for result in (there, back):
        _sound(result)


def _sound(result: Result) -> None:
    """Assert that every change is told, by ZeRO's families in sentences, with effects that go with their severity."""
    assert set(result.changes) <= {path for said in result.explained for path in said.paths}
    for said in result.explained:
        if said.code[:3] not in {"DF4", "DF5"}:
            continue
        assert said.message.strip() == said.message
        assert said.message[:1].upper() == said.message[:1]
        assert not said.message.endswith(".")
        assert "None" not in said.message.replace("`get_global_grad_norm` returns None", ""), said
        assert (said.severity is Severity.NONE) is (said.effects == (Effect.NONE,)), said
