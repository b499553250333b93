"""Configs for the tests of memory and communication."""

from __future__ import annotations

import json
from typing import Any

from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.rules import Facts, Settings
from dsmigrate.rules.context import Context

Config = dict[str, Any]
ADAMW: Config = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
HALF = ("", "fp16", "bf16")


def config(stage: int, half: str = "bf16", steps: int = 1, top: Config | None = None, **zero: object) -> Config:
    """Return a config of a ZeRO stage with AdamW; ``half`` is "fp16", "bf16" or "" for fp32."""
    found: Config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": steps, **ADAMW, **(top or {})}
    if half:
        found[half] = {"enabled": True, **found.get(half, {})}
    return found | {"zero_optimization": {"stage": stage, **zero}}


def offload(device: str = "cpu", **more: object) -> Config:
    """Return the member that offloads the optimizer."""
    return {"offload_optimizer": {"device": device, "nvme_path": "/nvme", **more}}


def offload_weights(device: str = "cpu", **more: object) -> Config:
    """Return the member that offloads the weights."""
    return {"offload_param": {"device": device, "nvme_path": "/nvme", **more}}


def context(
    wanted: Config, version: str | None = None, world_size: int | None = None, parameters: int | None = None
) -> Context:
    """Return a config as rules see it."""
    facts = Facts(world_size=world_size, parameters=parameters)
    return View(parse(json.dumps(wanted)), Settings(version=version, facts=facts)).context
