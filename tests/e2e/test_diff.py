"""The semantic diff against the real DeepSpeed: what it calls no change is none, and what is none it calls so.

``DSMIGRATE_TORCH_PYTHON`` is the interpreter that has deepspeed, ``DSMIGRATE_PAIRS`` a folder of real pairs;
``DSMIGRATE_GENERATED`` is the number of pairs that are made.
"""

from __future__ import annotations

import os

import pytest

from dsmigrate.diff.registry import every_explanation
from dsmigrate.knowledge import Consumer
from tests.diff import generate
from tests.diff.pairs import NO_PAIRS, pairs

from .diff_cases import Case, judge, rates

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

GENERATED = int(os.environ.get("DSMIGRATE_GENERATED", "400"))


def test_the_judge_sees_what_differs_and_what_does_not() -> None:
    base = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": %s}'
    told = {
        "equal": (base % '{"stage": 2}', base % '{"stage": "2", "cpu_offload": false}'),
        "differs": (base % '{"stage": 2}', base % '{"stage": 3}'),
        "rejected": (base % '{"stage": 2}', base % '{"stage": 4}'),
        "both rejected": (base % '{"stage": 5}', base % '{"stage": 4}'),
    }
    assert [one.kind for one in judge([Case(name, *texts) for name, texts in told.items()])] == list(told)
    rate = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": %s}}'
    built = [(rate % '{"lr": 0.001}', rate % "{}"), (rate % '{"lr": 0.01}', rate % "{}")]
    assert [one.kind for one in judge([Case("", *texts) for texts in built])] == ["equal", "differs"]


def test_generated_pairs() -> None:
    cases = [Case(str(number), pair.old, pair.new) for number, pair in enumerate(generate.pairs(GENERATED, seed=6))]
    judged = judge(cases)
    print(rates(judged))
    assert [str(one) for one in judged if not one.agrees] == []
    assert sum(one.kind == "equal" for one in judged) > GENERATED / 4
    assert sum(one.kind == "differs" for one in judged) > GENERATED / 8


def test_examples_of_the_explanations() -> None:
    cases = [
        Case(item.code, example.old, example.new, example.consumer)
        for item in every_explanation()
        for example in item.examples
        if example.old_version is None and example.new_version is None
    ]
    judged = judge(cases)
    print(rates(judged))
    assert [str(one) for one in judged if not one.agrees] == []


@pytest.mark.skipif(not pairs(), reason=NO_PAIRS)
def test_real_pairs() -> None:
    judged = judge([Case(pair.name, pair.old.text, pair.new.text, pair.consumer, adds_batch=True) for pair in pairs()])
    print(rates(judged))
    assert [str(one) for one in judged if not one.agrees] == []
    plain = [one for one in judged if one.case.consumer is Consumer.DEEPSPEED]
    assert plain
