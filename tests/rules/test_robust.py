"""No value at any key makes a rule raise: whatever stands there, something is said or nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Facts, Settings, check

pytestmark = pytest.mark.broad

VALUES: tuple[Any, ...] = ([], [[1]], {}, {"a": {}}, "", "x", None, True, -1, 0.5, 1e300)
FACTS = Facts(world_size=3, gpu_memory=1 << 34, parameters=10**9, hardware="v100", before="0.9.0")


def placed(path: str, value: Any) -> dict[str, Any]:
    """Return a config with ``value`` at a path, beside switches that make most rules look."""
    config: dict[str, Any] = {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "zenflow": {}},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.1}},
        "scheduler": {"type": "WarmupLR", "params": {}},
        "fp16": {"enabled": True},
        "pipeline": {},
        "wall_clock_breakdown": True,
    }
    place = config
    names = path.replace("[]", "").replace("*", "name").split(".")
    for name in names[:-1]:
        inner = place.get(name)
        place[name] = inner if isinstance(inner, dict) else {}
        place = place[name]
    place[names[-1]] = value
    return config


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_value_of_a_key_makes_a_rule_raise(value: Any) -> None:
    for number, path in enumerate(knowledge().every_path()):
        consumer = list(Consumer)[number % 3]
        text = json.dumps(placed(path, value))
        assert check(parse(text), Settings(consumer=consumer, facts=FACTS)) is not None, path


@pytest.mark.parametrize("kind", ["optimizer", "scheduler"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_value_of_a_parameter_makes_a_rule_raise(kind: str, value: Any) -> None:
    types = knowledge().every_optimizer() if kind == "optimizer" else knowledge().every_scheduler()
    for facts in types:
        config = placed("steps_per_print", 10)
        config[kind] = {"type": facts.name, "params": dict.fromkeys(facts.parameters, value)}
        assert check(parse(json.dumps(config)), Settings(facts=FACTS)) is not None, facts.path
