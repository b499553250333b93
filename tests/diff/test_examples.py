"""Every explanation's own examples: what it says, about which keys, with which effects."""

from __future__ import annotations

import re

import pytest

from dsmigrate.diff.model import Effect, Severity
from dsmigrate.diff.registry import Example, Explanation, every_explanation

from .examples import compared, said

CASES = [
    pytest.param(item, example, id=f"{item.code}-{number}")
    for item in every_explanation()
    for number, example in enumerate(item.examples)
]


@pytest.mark.parametrize(("item", "example"), CASES)
def test_an_explanation_says_what_its_example_states(item: Explanation, example: Example) -> None:
    found = said(item.code, example)
    if not example.says:
        assert found == []
        return
    fitting = [one for one in found if one.message.startswith(example.says)]
    assert fitting, f"said instead: {[one.message for one in found]}"
    one = fitting[0]
    assert set(example.paths) <= set(one.paths)
    if example.effects:
        assert set(one.effects) == set(example.effects)
    if example.severity is not None:
        assert one.severity is example.severity


@pytest.mark.parametrize(("item", "example"), CASES)
def test_every_change_of_an_example_is_told(item: Explanation, example: Example) -> None:  # noqa: ARG001
    result = compared(example)
    told = {path for one in result.explained for path in one.paths}
    assert set(result.changes) <= told


@pytest.mark.parametrize(("item", "example"), CASES)
def test_messages_are_sentences_without_blame(item: Explanation, example: Example) -> None:
    for one in said(item.code, example):
        assert one.message[:1].isupper() or one.message.startswith(("`", '"', "fp", "bf"))
        for text in (one.message, one.advice, one.brief):
            assert not text.endswith((".", "!", " "))
            assert "please" not in text.lower()
            assert "MISSING" not in text
            assert "UNKNOWN" not in text
        assert one.paths
        assert one.effects
        assert (one.severity is Severity.NONE) == (one.effects == (Effect.NONE,))
        assert len(set(one.effects)) == len(one.effects)


FALLBACKS = {"DF901": "each default that has moved so far is told by the family of its key"}
"""Explanations that are kept for what is to come."""


@pytest.mark.parametrize("item", every_explanation(), ids=lambda item: item.code)
def test_an_explanation_is_written_whole(item: Explanation) -> None:
    assert re.fullmatch(r"DF[1-9]\d{2}", item.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", item.name)
    assert item.summary.endswith(".")
    assert len(item.summary) <= 120
    assert item.why.strip()
    assert item.source
    if item.code not in FALLBACKS:
        assert any(example.says for example in item.examples), "no example with something to say"
    assert any(not example.says for example in item.examples), "no example without"


def test_names_are_used_once() -> None:
    every = every_explanation()
    assert len({item.name for item in every}) == len(every)
