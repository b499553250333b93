"""What counts as a mistake, beyond what fits in the examples: conversions of pydantic, and who is asked to judge."""

from __future__ import annotations

import json

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import knowledge
from dsmigrate.rules.context import Context
from dsmigrate.rules.types._shared import judge
from dsmigrate.rules.types._verdict import Kind


def kind(path: str, value: object, version: str | None = None) -> Kind | None:
    config: object = value
    for name in reversed(path.split(".")):
        config = {name: config}
    context = Context(parse(json.dumps(config)), knowledge(version))
    verdict = judge(context, context.entries[-1 if not isinstance(value, dict) else 0])
    return None if verdict is None else verdict.kind


@pytest.mark.parametrize("value", [3, 3.0, 5e8, 1e18, 10**25, "auto"])
def test_whole_numbers_of_any_spelling_are_integers(value: object) -> None:
    assert kind("zero_optimization.reduce_bucket_size", value) is None


@pytest.mark.parametrize("value", ["3", " 3 ", "+3", "3.0", "5_000", True])
def test_what_pydantic_converts_to_an_integer_is_said_to_be_converted(value: object) -> None:
    assert kind("zero_optimization.reduce_bucket_size", value) is Kind.COERCED


@pytest.mark.parametrize("value", ["5e8", 5.5, 1e19, "x", None, []])
def test_what_pydantic_refuses_for_an_integer_is_a_wrong_type(value: object) -> None:
    assert kind("zero_optimization.reduce_bucket_size", value) is Kind.TYPE


@pytest.mark.parametrize(
    ("value", "found"), [("T", Kind.COERCED), ("no", Kind.COERCED), (" true", Kind.TYPE), (2, Kind.TYPE)]
)
def test_switches_take_a_few_words(value: object, found: Kind) -> None:
    assert kind("zero_optimization.overlap_comm", value) is found


def test_pydantic_1_cut_fractions_off() -> None:
    assert kind("zero_optimization.reduce_bucket_size", 5.5, "0.14.5") is Kind.COERCED
    assert kind("zero_optimization.stage", "3", "0.14.5") is Kind.TYPE
    assert kind("wandb.project", 3, "0.14.5") is Kind.COERCED


def test_fp16_was_not_checked_before_0_17_1() -> None:
    assert kind("fp16.enabled", "false") is Kind.COERCED
    assert kind("fp16.enabled", "false", "0.17.0") is Kind.TRUTHY


def test_a_shadowed_section_is_not_judged() -> None:
    context = Context(parse('{"bf16": {}, "bfloat16": 5}'), knowledge())
    assert [judge(context, entry) for entry in context.entries] == [None, None]
