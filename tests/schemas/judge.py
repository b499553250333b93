"""What DeepSpeed itself says of configs, in a world where their batch keys fit and "auto" is filled."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dsmigrate.facts.sources import read
from tests.e2e.launching import torch_python, training_environment

from .support import FOLDER, Config

AUTO = "auto"
FILLS: Mapping[str, Any] = {
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 1.0,
    "optimizer.params.lr": 1e-3,
    "optimizer.params.betas": [0.9, 0.999],
    "optimizer.params.eps": 1e-8,
    "optimizer.params.weight_decay": 0.01,
    "scheduler.params.warmup_min_lr": 0,
    "scheduler.params.warmup_max_lr": 1e-3,
    "scheduler.params.warmup_num_steps": 100,
    "scheduler.params.total_num_steps": 1000,
    "fp16.enabled": False,
    "bf16.enabled": False,
    "zero_optimization.stage": 2,
    "zero_optimization.offload_optimizer.device": "none",
    "zero_optimization.offload_optimizer.nvme_path": "/nvme",
    "zero_optimization.offload_param.device": "none",
    "zero_optimization.offload_param.nvme_path": "/nvme",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": True,
    "zero_optimization.reduce_bucket_size": 1_000_000,
    "zero_optimization.stage3_prefetch_bucket_size": 1_000_000,
    "zero_optimization.stage3_param_persistence_threshold": 10_000,
}
"""What a consumer might put in the place of "auto"; ``train_batch_size`` is left to the arithmetic."""
COMPUTED = "train_batch_size"


def judge(configs: Sequence[Config]) -> list[str | None]:
    """Return DeepSpeed's error for each config, None for one that it accepts."""
    filled_in = [filled(config) for config in configs]
    child = subprocess.run(
        [torch_python(), str(Path(__file__).with_name("judge_child.py"))],
        input="".join(json.dumps({"config": config, "world": world(config)}) + "\n" for config in filled_in),
        capture_output=True,
        text=True,
        env=training_environment(),
        timeout=600,
        check=False,
    )
    answers = [json.loads(line)["error"] for line in child.stdout.splitlines()]
    if len(answers) != len(configs):
        raise RuntimeError(f"{torch_python()} does not judge configs: {child.stderr[-2000:]}")
    return answers


@cache
def fillable() -> frozenset[str]:
    """Return every path where Transformers or Accelerate replaces "auto", and not any other value as well."""
    consumers = read(FOLDER).consumers
    return frozenset(
        path
        for consumer in consumers.values()
        for path, fill in consumer.get("fills", {}).items()
        if not fill.get("overwrites")
    )


def filled(config: Config) -> Config:
    """Return a copy with a value wherever a consumer replaces "auto"; elsewhere "auto" stays."""
    done = copy.deepcopy(config)
    for path in sorted(fillable()):
        *sections, name = path.split(".")
        place: Any = done
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if isinstance(place, dict) and place.get(name) == AUTO:
            if path == COMPUTED:
                del place[name]
            else:
                place[name] = copy.deepcopy(FILLS[path])
    return done


def world(config: Config) -> int:
    """Return the number of processes for which the batch keys of a config fit, 1 if there is none."""
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    total, micro, steps = (_positive(config.get(key)) for key in keys)
    if not total or not micro or not steps:
        return 1
    size, rest = divmod(total, micro * steps)
    ranks = _positive(config.get("sequence_parallel_size", 1))
    return int(size * ranks) or 1 if size and ranks and not rest else 1


def _positive(value: object) -> float:
    """Return a positive number, which true counts as, 0 for anything else."""
    return value if isinstance(value, int | float) and 0 < value < 2**53 else 0
