from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.knowledge.near import nearest, slips

NAMES = ["fp16", "bf16", "zero_optimization", "gradient_clipping", "overlap_comm", "stage", "offload_param", "type"]


@pytest.mark.parametrize("word", ["speed", "checkpoint", "x", "", "stages_of_grief", "my_application_key"])
def test_another_word_is_near_to_nothing(word: str) -> None:
    assert nearest(word, NAMES) == []


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("bp16", "bf16"),
        ("fp6", "fp16"),
        ("FP16", "fp16"),
        ("zero_optimisation", "zero_optimization"),
        ("zero-optimization", "zero_optimization"),
        ("gradient_cliping", "gradient_clipping"),
        ("comm_overlap", "overlap_comm"),
        ("overlapComm", "overlap_comm"),
        ("zeroOptimization", "zero_optimization"),
        ("satge", "stage"),
        ("offload_params", "offload_param"),
        ("typ", "type"),
    ],
)
def test_a_slip_finds_its_key(word: str, name: str) -> None:
    assert nearest(word, NAMES)[0] == name


@given(st.text(alphabet="abcd_", max_size=8), st.text(alphabet="abcd_", max_size=8))
def test_slips_are_symmetric_and_bounded_by_the_longer_word(left: str, right: str) -> None:
    longest = max(len(left), len(right))
    distance = slips(left, right, longest)
    assert distance is not None
    assert distance == slips(right, left, longest)
    assert (distance == 0) is (left == right)
    assert slips(left, right, distance) == distance
    assert distance == 0 or slips(left, right, distance - 1) is None
