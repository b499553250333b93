"""Every config that is recommended over the grid, against the real DeepSpeed: its loader, and its engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dsmigrate.knowledge import Consumer
from dsmigrate.recommend import recommend
from tests.recommend.grid import requests
from tests.recommend.situations import SITUATIONS

from . import judging
from .launching import free_port

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("rules")]

Config = dict[str, Any]
MOST = 10_000
"""Elements of buckets for an engine of a few weights."""


def configs() -> list[tuple[Config, int]]:
    """Return the distinct configs of requests and situations with a world size of each, for DeepSpeed as installed.

    They are what is chosen, and whatever changes numbers or the script.
    """
    found: dict[str, tuple[Config, int]] = {}
    for request in (*requests(), *(one.request for one in SITUATIONS)):
        answer = recommend(replace(request, consumer=Consumer.DEEPSPEED, version=None))
        for one in answer.fitting:
            if one is answer.chosen or not one.variant.is_plain:
                found.setdefault(json.dumps(one.config), (one.config, request.machine.ranks))
    return list(found.values())


def small(config: Config) -> Config:
    """Return a config with every size cut down to what an engine of a few weights allocates in no time."""
    found: Config = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found[name] = small(value)
        elif name == "nvme_path":
            found[name] = "nvme"
        elif name == "sequence_parallel_size":
            continue  # its groups are the script's: test_ulysses
        else:
            found[name] = min(value, MOST) if type(value) is int else value
    return found


def judged(questions: list[Config]) -> list[Config]:
    """Return what the judge says to each question."""
    return judging.ask("rule_judge.py", questions, str(free_port()))


def test_the_loader_takes_every_config_and_the_engine_every_kind() -> None:
    found = configs()
    assert len(found) > 60
    loaded = judged([{"config": config, "worlds": [world], "deep": False} for config, world in found])
    refused = [
        (config, answer) for (config, _), answer in zip(found, loaded, strict=True) if answer["verdict"] != "accepted"
    ]
    assert refused == []
    kinds = list({json.dumps(small(config)): small(config) for config, _ in found}.values())
    # DeepSpeed keeps the groups of hpZ as long as the process lives: engines after it take them for their own
    kinds.sort(key=lambda config: "zero_hpz_partition_size" in config["zero_optimization"])
    stepped = judged([{"config": config, "worlds": [1], "deep": True} for config in kinds])
    refused = [
        (config, answer) for config, answer in zip(kinds, stepped, strict=True) if answer["verdict"] != "accepted"
    ]
    assert refused == []
