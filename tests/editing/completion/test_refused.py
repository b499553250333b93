"""The combinations of schemas/deepspeed/refused.toml, each against the rule that tells of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.completion.refusals import is_refused
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.facts.sources import read
from dsmigrate.knowledge import MISSING, Consumer, Knowledge, knowledge
from dsmigrate.knowledge.versions import order
from dsmigrate.rules import Facts, Settings, Severity, check
from tests.schemas.support import FOLDER

pytestmark = pytest.mark.broad

Config = dict[str, Any]
WORLD = 8
BESIDE: dict[str, Config] = {
    "DS326": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}},
    "DS322": {"zero_optimization": {"stage": 2}},
    "DS324": {"zero_optimization": {"stage": 2}},
    "DS344": {},
    "DS405": {"zero_optimization": {"stage": 2}, "gradient_clipping": 0.0},
    "DS450": {"zero_optimization": {"stage": 2}},
    "DS452": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}},
    "DS456": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}},
    "DS458": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}},
    "DS520": {"zero_optimization": {"stage": 3}},
    "DS545": {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": True}}},
    "DS645": {"zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True},
    "DS665": {"fp16": {"enabled": True}},
    "DS725": {"scheduler": {"params": {"max_lr": 0.1}}},
    "DS801": {"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}},
    "DS778": {"scheduler": {"type": "CyclicLR", "params": {"base_lr": 0.1, "max_lr": 0.2}}},
    "DS787": {"scheduler": {"type": "StepLR", "params": {"step_size": 1}}},
    "DS934": {},
    "DS922": {"data_efficiency": {"data_routing": {"random_ltd": {"enabled": True}}}},
    "DS944": {"elasticity": {"max_train_batch_size": 100, "micro_batch_sizes": [1]}},
    "DS945": {"elasticity": {"max_train_batch_size": 100, "micro_batch_sizes": [1]}},
}
"""What a rule looks for beside the conditions, which say no more than completion has to know."""
EXACT: dict[str, Config] = {
    "DS472 tp_size autotp_size": {"train_batch_size": 8, "tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 2}}},
    "DS945 enabled max_gpus": {
        "elasticity": {
            "enabled": True,
            "max_train_batch_size": 100,
            "micro_batch_sizes": [1],
            "min_gpus": 4,
            "max_gpus": 2,
        }
    },
    "DS472 autotp_size tp_size": {"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}},
}
"""Configs for conditions that compare two keys."""
PARAMETERS = {"nesterov": "SGD", "differentiable": "SGD", "capturable": "Adamax", "fused": "SGD"}
"""Types whose classes know a switch."""


def tables() -> list[Config]:
    return list(read(FOLDER).refused["refused"])


def release(table: Config) -> str:
    """Return the newest release that a combination holds for."""
    every = read(FOLDER).releases
    return next(one for one in reversed(every) if "until" not in table or order(one) < order(table["until"]))


def made(table: Config, known: Knowledge) -> Config:
    """Return a config in which all conditions of a combination hold."""
    if name_of(table) in EXACT:
        return EXACT[name_of(table)]
    config: Config = json.loads(json.dumps({"train_batch_size": WORLD} | BESIDE.get(table["code"], {})))
    if table["code"] in {"DS200", "DS944"}:
        config.pop("train_batch_size")
    names = [path.rpartition(".")[2] for path in table["when"] if path.startswith("optimizer.params.")]
    if names:
        _put(config, "optimizer.type", next((PARAMETERS[name] for name in names if name in PARAMETERS), "AdamW"))
    for path, wanted in sorted(table["when"].items(), key=lambda row: row[0].count(".")):
        for value in _chosen(path, wanted, config, known):
            _put(config, path, value)
    return config


def _chosen(path: str, wanted: object, config: Config, known: Knowledge) -> Iterator[object]:
    """Yield the value to put at a path for a condition to hold, if it does not without."""
    if not isinstance(wanted, dict):
        yield wanted[0] if isinstance(wanted, list) else wanted
        return
    (operator, operand) = next(iter(wanted.items()))
    key = known.key(path)
    section = path in {"optimizer.params", "scheduler.params"} or (key is not None and key.is_section)
    if operator == "given" and operand:
        yield {} if section else True
    elif operator == "not":
        values = operand if isinstance(operand, list) else [operand]
        others = (*(key.enum if key else ()), 2, False, True, "Lion")
        if known.default(path) in (*values, MISSING) or path == "optimizer.type":
            yield next(one for one in others if one not in values and _fits(key, one))
    elif operator == "null" and not operand:
        yield {"scheduler.type": "WarmupLR", "tensor_parallel.preset_model": "llama"}.get(path, "mixtral")
    elif operator == "auto":
        yield "auto"
    elif operator in {"above", "below"}:
        limit = operand if not isinstance(operand, str) else known.default(operand)
        if isinstance(operand, str) and not isinstance(limit, int):
            _put(config, operand, 4)
            limit = 4
        step = 0.5 if key is not None and "number" in key.type else 1
        yield limit + step if operator == "above" else limit - step
    elif operator == "is":
        yield {"torch": "StepLR", "untested": "SGD"}[operand]
    elif operator in {"odd", "splits"}:
        yield 3


def _fits(key: Any, value: object) -> bool:
    if key is None or key.path == "optimizer.type":
        return value == "Lion"
    if key.enum:
        return value in key.enum
    kinds = {bool: "boolean", int: "integer"}
    return kinds.get(type(value), "string") in key.type or (type(value) is int and "number" in key.type)


def _put(config: Config, path: str, value: object) -> None:
    names = path.split(".")
    place = config
    for name in names[:-1]:
        inner = place.get(name)
        place = place.setdefault(name, {}) if isinstance(inner, dict) or inner is None else place
    if not isinstance(value, dict) or not isinstance(place.get(names[-1]), dict):
        place[names[-1]] = value


def settings_of(table: Config) -> Settings:
    consumer = Consumer(table.get("consumers", ["deepspeed"])[0])
    return Settings(version=release(table), consumer=consumer, facts=Facts(world_size=WORLD))


def name_of(table: Config) -> str:
    return f"{table['code']} {' '.join(path.rpartition('.')[2] for path in table['when'])}"


@pytest.mark.parametrize("table", tables(), ids=name_of)
def test_the_rule_tells_of_the_combination(table: Config) -> None:
    settings = settings_of(table)
    config = made(table, knowledge(settings.version))
    text = json.dumps(config, indent=1)
    found = {finding.code for finding in check(parse(text), settings) if finding.severity is Severity.ERROR}
    assert table["code"] in found, text


@pytest.mark.parametrize("table", tables(), ids=name_of)
def test_completion_knows_the_combination(table: Config) -> None:
    settings = settings_of(table)
    document = parse(json.dumps(made(table, knowledge(settings.version))))
    situation = Situation(View(document, settings), document)
    assert any(is_refused(situation, {path: situation.raw(path)}) for path in table["when"])


def test_a_key_that_goes_counts_as_its_default() -> None:
    document = parse('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}')
    situation = Situation(View(document), document)
    assert is_refused(situation, {"zero_optimization.stage": MISSING})
    assert not is_refused(situation, {"zero_optimization.stage": 1})


def test_what_the_consumer_fills_meets_no_condition() -> None:
    document = parse('{"fp16": {"enabled": "auto"}}')
    trainer = Settings(consumer=Consumer.TRANSFORMERS)
    assert not is_refused(Situation(View(document, trainer), document), {"bf16.enabled": True})
    document = parse('{"fp16": {"enabled": true}}')
    assert is_refused(Situation(View(document, trainer), document), {"bf16.enabled": True})
