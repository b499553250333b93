from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules.context import Context


@pytest.mark.parametrize(
    ("text", "conditions", "holds"),
    [
        ('{"fp16": {"enabled": true}}', {"fp16.enabled": [True]}, True),
        ('{"fp16": {"enabled": "off"}}', {"fp16.enabled": [True]}, False),
        ("{}", {"fp16.enabled": [True]}, False),
        ('{"fp16": {"enabled": "auto"}}', {"fp16.enabled": [True]}, None),
        ('{"fp16": {"enabled": "auto"}}', {"fp16.enabled": [True], "zero_optimization.stage": [3]}, False),
        ('{"elasticity": {"enabled": null}}', {"elasticity.enabled": [False]}, True),
        ('{"elasticity": {"enabled": "no"}}', {"elasticity.enabled": [False]}, False),
        ('{"zero_optimization": {"stage": 3}}', {"zero_optimization.stage": [2, 3], "bf16.enabled": [False]}, True),
        ("{}", {}, True),
    ],
)
def test_conditions_hold_when_every_path_has_one_of_its_values(
    text: str, conditions: dict[str, list[object]], holds: bool | None
) -> None:
    consumer = Consumer.TRANSFORMERS if "auto" in text else Consumer.DEEPSPEED
    context = Context(parse(text), knowledge("0.19.6"), consumer=consumer)
    assert context.holds(conditions) is holds
