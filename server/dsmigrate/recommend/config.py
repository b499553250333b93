"""The config of a choice: for a release, for who reads it, and no wider than memory allows."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import Consumer, Knowledge, Status
from dsmigrate.knowledge.bugs import Bug
from dsmigrate.memory.variants import Config, Variant
from dsmigrate.recommend.request import Request
from dsmigrate.rules.batch._shared import SEQUENCE

LOW_BETA = 0.95
"""beta2 for second moments in bf16, which 0.999 would leave as they are: a thousandth less rounds to the same."""
_FREE = ("optimizer.params", "bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes in elements: of the bucket, of what stage 3 gathers, of a sub-group, and of weights kept in host memory."""

    bucket: int
    live: int
    prefetch: int
    group: int
    in_host: int


ROOMY = Tuning(200_000_000, 1_000_000_000, 50_000_000, 1_000_000_000, 1_000_000_000)
TUNINGS = (
    ROOMY,
    Tuning(50_000_000, 300_000_000, 20_000_000, 100_000_000, 100_000_000),
    Tuning(10_000_000, 50_000_000, 10_000_000, 50_000_000, 0),
)
"""From the quickest to the most frugal; smaller buckets make more and smaller messages."""


def config_for(request: Request, variant: Variant, tuning: Tuning, known: Knowledge) -> Config:
    """Return a config with keys that the release has, and with "auto" where the consumer fills it in."""
    found: Config = {
        **_batches(request),
        **_precision(request, variant),
        **_optimizer(request, variant),
        "zero_optimization": _zero(request, variant, tuning),
    }
    return {name: value for name, value in _present(found, "", known).items() if value != {}}


def avoiding(config: Config, bugs: Iterable[Bug]) -> Config:
    """Return a config with the settings that avoid some bugs of its release."""
    found = copy.deepcopy(config)
    for bug in bugs:
        for key, value in bug.sets.items():
            *sections, name = key.split(".")
            functools.reduce(lambda section, part: section.setdefault(part, {}), sections, found)[name] = value
        for key in bug.removes:
            *sections, name = key.split(".")
            functools.reduce(lambda section, part: section.get(part, {}), sections, found).pop(name, None)
    return found


def overlapping(config: Config) -> bool:
    """Return whether gradients are sent while backward goes on, as they are unless that is switched off."""
    return config["zero_optimization"].get("overlap_comm") is not False


def _batches(request: Request) -> Config:
    if request.consumer is Consumer.DEEPSPEED:
        sizes = request.work.micro_batch, request.steps
        found: Config = {
            "train_micro_batch_size_per_gpu": sizes[0],
            "gradient_accumulation_steps": sizes[1],
            "gradient_clipping": 1.0,
        }
        # Accelerate's mpu needs no key, and with it zero.Init of the Trainer finds batch sizes that do not multiply up
        return found | ({SEQUENCE: request.work.shared} if request.work.shared > 1 else {})
    names = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
    return {"train_batch_size": "auto"} | dict.fromkeys(names, "auto")


def _precision(request: Request, variant: Variant) -> Config:
    if request.half == "fp32":
        return {}
    enabled: bool | str = "auto" if request.consumer is Consumer.TRANSFORMERS else True
    low = dict.fromkeys(("bf16_master_weights_and_grads", "bf16_optimizer_states"), True) if variant.low else {}
    return {request.half: {"enabled": enabled, **low}}


def _optimizer(request: Request, variant: Variant) -> Config:
    """Return the section ``optimizer``: with offload it has to be DeepSpeed's own, which it makes of the config.

    Accelerate replaces the script's optimizer by itself, and asks for a placeholder where the config has one.
    """
    if request.consumer is Consumer.ACCELERATE:
        return {}
    if request.consumer is Consumer.TRANSFORMERS:
        return {"optimizer": {"type": "AdamW", "params": dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")}}
    second = LOW_BETA if variant.low else 0.999
    params = {"lr": 1e-4, "betas": [0.9, second], "eps": 1e-8, "weight_decay": 0.01}
    return {"optimizer": {"type": "AdamW", "params": params}}


def _zero(request: Request, variant: Variant, tuning: Tuning) -> Config:
    found = variant.section(request.nvme_path or "/nvme")
    model = request.described.model
    if variant.stage:
        found |= {"overlap_comm": True, "reduce_bucket_size": max(1, min(tuning.bucket, model.parameters))}
    if variant.stage < 3:
        return found
    found |= {
        "stage3_max_live_parameters": tuning.live,
        "stage3_max_reuse_distance": tuning.live,
        "stage3_prefetch_bucket_size": tuning.prefetch,
        "stage3_gather_16bit_weights_on_model_save": True,
    }
    if request.described.block:  # the experts of a block are gathered together
        found["leaf_module"] = {"classes": [request.described.block]}
    group = min(tuning.group, 100_000_000) if variant.optimizer == "nvme" else tuning.group
    if group != ROOMY.group:
        found["sub_group_size"] = group
    if variant.optimizer == "nvme":
        found["offload_optimizer"]["buffer_count"] = 4
    if variant.weights == "nvme":
        # Each tensor's shard has to fit in a buffer (partitioned_param_swapper.py:_is_io_needed and swap_in).
        shard = -(-(model.largest or model.parameters) // request.machine.ranks)
        found["offload_param"] |= {"buffer_size": max(100_000_000, shard + 1024), "max_in_cpu": tuning.in_host}
    return found


def _present(section: Config, above: str, known: Knowledge) -> Config:
    """Return a section without the keys that the release does not know."""
    found: Config = {}
    for name, value in section.items():
        path = f"{above}.{name}" if above else name
        key = known.key(path)
        if path.startswith(_FREE) or (key is not None and key.status in {Status.PRESENT, Status.DEPRECATED}):
            inner: Any = (
                _present(value, path, known) if isinstance(value, dict) and not path.startswith(_FREE) else value
            )
            found[name] = inner
    return found
