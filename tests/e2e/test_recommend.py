"""Every config that is recommended over the grid, against the real DeepSpeed: its loader, and its engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.knowledge import Consumer
from dsmigrate.recommend import recommend
from tests.recommend.grid import requests

from .launching import torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("rules")]

ROOT = Path(__file__).resolve().parents[2]
Config = dict[str, Any]
MOST = 10_000
"""Elements of buckets for an engine of a few weights."""


def configs() -> list[tuple[Config, int]]:
    """Return the distinct configs for plain DeepSpeed of the newest release, with a world size of each.

    Those for other readers have their "auto", and those for older releases fewer keys: both stay out.
    """
    found: dict[str, tuple[Config, int]] = {}
    for request in requests():
        answer = recommend(request) if request.consumer is Consumer.DEEPSPEED else None
        if answer is not None and answer.chosen is not None:
            found.setdefault(json.dumps(answer.chosen.config), (answer.chosen.config, request.machine.ranks))
    return list(found.values())


def small(config: Config) -> Config:
    """Return a config with every size cut down to what an engine of a few weights allocates in no time."""
    return {
        name: small(value) if isinstance(value, dict) else min(value, MOST) if type(value) is int else value
        for name, value in config.items()
    }


def judged(questions: list[Config]) -> list[Config]:
    """Return what the judge says to each question."""
    child = subprocess.run(
        [torch_python(), str(ROOT / "tests" / "e2e" / "rule_judge.py")],
        input="".join(json.dumps(question) + "\n" for question in questions),
        capture_output=True,
        text=True,
        env=training_environment() | {"PYTHONPATH": f"{training_environment()['PYTHONPATH']}:{ROOT}"},
        timeout=600,
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(answers) == len(questions), child.stderr[-2000:]
    return answers


def test_the_loader_takes_every_config_and_the_engine_every_kind() -> None:
    found = configs()
    assert len(found) > 60
    loaded = judged([{"config": config, "worlds": [world], "deep": False} for config, world in found])
    refused = [
        (config, answer) for (config, _), answer in zip(found, loaded, strict=True) if answer["verdict"] != "accepted"
    ]
    assert refused == []
    kinds = list({json.dumps(small(config)): small(config) for config, _ in found}.values())
    stepped = judged([{"config": config, "worlds": [1], "deep": True} for config in kinds])
    refused = [
        (config, answer) for config, answer in zip(kinds, stepped, strict=True) if answer["verdict"] != "accepted"
    ]
    assert refused == []
