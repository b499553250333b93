"""The conditions of optimizer parameters are prose of the facts: every one must be understood."""

from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import knowledge
from dsmigrate.rules.context import Context
from dsmigrate.rules.optimizer._shared import class_name, refusal

CONDITIONS = [
    pytest.param(facts.name, parameter.name, id=f"{facts.name}.{parameter.name}")
    for facts in knowledge().optimizers()
    for parameter in facts.parameters.values()
    if parameter.only_with
]
SURROUNDINGS = [
    f'{{"zero_optimization": {{"stage": 2, "offload_optimizer": {{"device": "{device}"}}}}, '
    f'"optimizer": {{"type": "%s", "params": {{"torch_adam": {torch}, "adam_w_mode": {decoupled}}}}}}}'
    for device in ("none", "cpu")
    for torch in ("true", "false")
    for decoupled in ("true", "false")
]


@pytest.mark.parametrize(("kind", "name"), CONDITIONS)
def test_every_condition_decides_between_classes(kind: str, name: str) -> None:
    outcomes = set()
    for text in SURROUNDINGS:
        context = Context(parse(text % kind), knowledge())
        facts = knowledge().optimizer(kind)
        assert facts is not None
        assert class_name(context, facts)
        outcomes.add(refusal(context, facts, facts.parameters[name], value=True))
    assert None in outcomes
    assert len(outcomes) == 2
