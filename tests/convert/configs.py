"""Configs to convert: made by a generator, and a folder of real ones where one is named."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsmigrate.document import parse

Config = dict[str, Any]
SEED = 20


def generated(count: int) -> list[Config]:
    """Return configs that differ in everything that forms carry, and in some that they do not."""
    drawn = random.Random(SEED)  # noqa: S311 - the same ones each time
    return [_one(drawn) for _ in range(count)]


def _one(drawn: random.Random) -> Config:
    config: Config = {}
    if drawn.random() < 0.8:
        config["train_micro_batch_size_per_gpu"] = drawn.choice([1, 2, 4, 16])
    if drawn.random() < 0.8:
        config["gradient_accumulation_steps"] = drawn.choice([1, 2, 8])
    if drawn.random() < 0.8:
        config["gradient_clipping"] = drawn.choice([0.5, 1.0, 1, 2])
    if drawn.random() < 0.3:
        config["steps_per_print"] = drawn.choice([1, 100])
    _precision(config, drawn)
    config["zero_optimization"] = _zero(drawn)
    if drawn.random() < 0.5:
        params: Config = {"lr": drawn.choice([1e-3, 3e-5])}
        params |= {} if drawn.random() < 0.5 else {"betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
        config["optimizer"] = {"type": "AdamW", "params": params}
        if drawn.random() < 0.5:
            steps = {"warmup_min_lr": 0, "warmup_max_lr": params["lr"], "warmup_num_steps": drawn.choice([1, 10])}
            config["scheduler"] = {"type": "WarmupDecayLR", "params": {**steps, "total_num_steps": 500}}
    if drawn.random() < 0.3:
        config["wall_clock_breakdown"] = drawn.random() < 0.5
    return config


def _precision(config: Config, drawn: random.Random) -> None:
    kind = drawn.choice(["fp16", "bf16", ""])
    if kind == "bf16":
        config["bf16"] = {"enabled": True}
    elif kind == "fp16":
        config["fp16"] = {"enabled": True, "auto_cast": True}
        config["fp16"] |= {} if drawn.random() < 0.5 else {"loss_scale_window": 100}


def _zero(drawn: random.Random) -> Config:
    stage = drawn.choice([0, 1, 2, 3])
    zero: Config = {"stage": stage}
    if stage >= 2 and drawn.random() < 0.6:
        zero["offload_optimizer"] = {"device": drawn.choice(["cpu", "none"])}
    if stage == 3 and drawn.random() < 0.6:
        device = drawn.choice(["cpu", "nvme", "none"])
        zero["offload_param"] = {"device": device, **({"nvme_path": "/local nvme"} if device == "nvme" else {})}
        zero["stage3_gather_16bit_weights_on_model_save"] = drawn.random() < 0.5
    if drawn.random() < 0.3:
        zero["overlap_comm"] = drawn.random() < 0.5
    return zero


def real() -> Iterator[tuple[str, Config]]:
    """Yield the configs of ``DSMIGRATE_CORPUS`` by name, of those that DeepSpeed reads."""
    folder = os.environ.get("DSMIGRATE_CORPUS")
    for file in sorted(Path(folder).iterdir()) if folder else ():
        document = parse(file.read_text(encoding="utf-8", errors="replace"))
        value = document.value()
        if document.is_readable and isinstance(value, dict):
            yield file.name, value


def text_of(config: Config) -> bytes:
    """Return the file of a config."""
    return json.dumps(config, indent=2).encode()


def normal(config: Config) -> Config:
    """Return a config without what says nothing: what Accelerate adds to every config, and what is off."""
    config = copy.deepcopy(config)
    if config.get("steps_per_print") == "infinity":
        del config["steps_per_print"]
    for kind in ("fp16", "bf16"):
        if isinstance(config.get(kind), dict) and config[kind].get("enabled", False) is False:
            del config[kind]
    if config.get("gradient_accumulation_steps") == 1:
        del config["gradient_accumulation_steps"]
    zero = config.get("zero_optimization")
    if isinstance(zero, dict):
        for section in ("offload_optimizer", "offload_param"):
            inner = zero.get(section)
            if isinstance(inner, dict) and inner.get("nvme_path", "") is None:
                del inner["nvme_path"]
            if isinstance(inner, dict) and inner.get("device", "none") == "none":
                del zero[section]
        if zero.get("stage3_gather_16bit_weights_on_model_save") is False:
            del zero["stage3_gather_16bit_weights_on_model_save"]
        if zero in ({}, {"stage": 0}):
            del config["zero_optimization"]
    return config
