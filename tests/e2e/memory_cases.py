"""The configs that the memory model is measured with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import knowledge
from dsmigrate.memory import Model
from dsmigrate.memory.activations import Workload
from dsmigrate.memory.estimate import Machine
from dsmigrate.memory.shape import Described
from dsmigrate.memory.variants import VARIANTS
from dsmigrate.recommend import Request
from dsmigrate.recommend.config import TUNINGS, config_for

WIDTHS = (64, 96, 128, 64)
ODD_WIDTHS = (61, 97, 129, 67)
LARGE_WIDTHS = (1024, 1024, 1024)
"""Shards of the weights have 1 MiB in bf16, from which they are swapped."""
BUCKET = 20_000
Config = dict[str, Any]
FP32_SUMS = {"data_types": {"grad_accum_dtype": "fp32"}}
STATIC = {"fp16": {"loss_scale": 1}}
"""No overflow at the start skips the step that makes the optimizer states."""
ADAMW = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
TO_HOST = {"offload_optimizer": {"device": "cpu", "pin_memory": False}}
SHARDS_TO_HOST = {"offload_param": {"device": "cpu", "pin_memory": False}}


@dataclass(frozen=True)
class Case:
    """A config that is measured on some ranks."""

    name: str
    config: Config
    ranks: int = 2
    widths: tuple[int, ...] = WIDTHS


def config(stage: int, half: str = "", steps: int = 1, top: Config | None = None, **zero: object) -> Config:
    """Return a config of a stage with small buckets, and no tensor at stage 3 that is too small to be sharded."""
    section: Config = {"stage": stage, "reduce_bucket_size": BUCKET, "stage3_param_persistence_threshold": 0, **zero}
    found: Config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": steps, **(top or {})}
    if half:
        found[half] = {"enabled": True, **found.get(half, {})}
    return found | {"zero_optimization": section}


def cases() -> Iterator[Case]:
    """Yield stages 0 to 3 in each format, with and without offload, on one and two ranks, and all others."""
    for stage in range(4):
        yield Case(f"stage {stage}, fp32", config(stage))
        yield Case(f"stage {stage}, bf16, 2 micro-batches", config(stage, "bf16", 2))
        yield Case(f"stage {stage}, bf16, alone", config(stage, "bf16"), ranks=1)
    for stage in (1, 2, 3):
        yield Case(f"stage {stage}, bf16, offload", config(stage, "bf16", 1, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, bf16, offload, 2 micro-batches", config(stage, "bf16", 2, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp16, offload", config(stage, "fp16", 1, STATIC | ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp16", config(stage, "fp16", 1, STATIC))
        yield Case(f"stage {stage}, fp32, offload", config(stage, "", 1, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp32, offload, alone", config(stage, "", 1, ADAMW, **TO_HOST), ranks=1)
        yield Case(f"stage {stage}, bf16, odd sizes", config(stage, "bf16"), widths=ODD_WIDTHS)
    yield from other_cases()


def other_cases() -> Iterator[Case]:
    """Yield what else moves memory or bytes: formats, buckets, how much is gathered, parts on the host."""
    yield Case("stage 0, fp16, config optimizer", config(0, "fp16", 1, ADAMW))
    yield Case("stage 1, bf16, fp32 sums", config(1, "bf16", 2, FP32_SUMS))
    at_once = {"bf16": {"immediate_grad_update": True}}
    yield Case("stage 1, bf16, fp32 sums at once", config(1, "bf16", 2, FP32_SUMS | at_once))
    aligned = config(2, "bf16", parameter_alignment=True)
    yield Case("stage 2, bf16, aligned", aligned, widths=ODD_WIDTHS)
    yield Case("stage 1, bf16, fp32 sums, offload", config(1, "bf16", 2, FP32_SUMS | ADAMW, **TO_HOST))
    yield Case("stage 1, fp16, fp32 sums", config(1, "fp16", 2, FP32_SUMS))
    yield Case("stage 2, bf16, fp32 sums", config(2, "bf16", 2, FP32_SUMS))
    yield Case("stage 3, bf16, fp32 sums", config(3, "bf16", 2, FP32_SUMS))
    yield Case("stage 2, bf16, fp32 sums, offload", config(2, "bf16", 2, FP32_SUMS | ADAMW, **TO_HOST))
    yield Case("stage 1, bf16, overlap", config(1, "bf16", 2, overlap_comm=True))
    yield Case("stage 2, bf16, overlap", config(2, "bf16", overlap_comm=True))
    yield Case("stage 2, bf16, no bucket", config(2, "bf16", contiguous_gradients=False))
    yield Case("stage 2, bf16, all-reduce", config(2, "bf16", reduce_scatter=False))
    yield Case("stage 2, bf16, by owner", config(2, "bf16", use_multi_rank_bucket_allreduce=False))
    yield Case("stage 2, bf16, fp32 on the wire", config(2, "bf16", 1, {"communication_data_type": "fp32"}))
    yield Case("stage 3, bf16, fp32 on the wire", config(3, "bf16", 1, {"communication_data_type": "fp32"}))
    yield Case("stage 3, bf16, all-reduce", config(3, "bf16", reduce_scatter=False))
    yield Case("stage 3, bf16, all-reduced weights", config(3, "bf16", stage3_use_all_reduce_for_fetch_params=True))
    near = {"stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
    yield Case("stage 3, bf16, nothing kept", config(3, "bf16", 2, **near))
    yield Case("stage 3, bf16, half kept", config(3, "bf16", **near | {"stage3_max_reuse_distance": 20_000}))
    yield Case("stage 3, bf16, one ahead", config(3, "bf16", **near, stage3_allgather_sequential=True))
    yield Case("stage 3, bf16, small stay", config(3, "bf16", **near, stage3_param_persistence_threshold=7000))
    yield Case("stage 3, bf16, groups", config(3, "bf16", 2, **near, zero_hpz_partition_size=2))
    yield Case("stage 3, bf16, no bucket", config(3, "bf16", contiguous_gradients=False))
    yield Case("stage 3, bf16, both on host", config(3, "bf16", 1, ADAMW, **TO_HOST, **SHARDS_TO_HOST))
    yield Case("stage 3, bf16, weights on host", config(3, "bf16", **SHARDS_TO_HOST))
    partly = {"offload_optimizer": {"device": "cpu", "pin_memory": False, "ratio": 0.5}, "sub_group_size": 5000}
    yield Case("stage 3, bf16, partly on host", config(3, "bf16", 1, ADAMW, **partly))
    yield from disk_cases()
    masters = {"bf16": {"bf16_master_weights_and_grads": True}}
    yield Case("stage 2, bf16 masters, offload", config(2, "bf16", 1, ADAMW | masters, **TO_HOST))
    states = {"bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}
    yield Case("stage 2, bf16 states, offload", config(2, "bf16", 1, ADAMW | states, **TO_HOST))
    yield Case("stage 3, bf16 states", config(3, "bf16", 1, states))


def disk_cases() -> Iterator[Case]:
    """Yield what is swapped to NVMe: optimizer states in one or two sub-groups, and weights."""
    states = {"device": "nvme", "buffer_count": 5, "pin_memory": False}
    weights = {"device": "nvme", "max_in_cpu": 0, "buffer_size": 1_100_000, "pin_memory": False}
    groups = {"sub_group_size": 500_000}
    for name, members in {
        "states": {"offload_optimizer": states | {"nvme_path": "states"}},
        "states in groups": {"offload_optimizer": states | {"nvme_path": "groups"}, **groups},
        "states and weights": {
            "offload_optimizer": states | {"nvme_path": "both"},
            "offload_param": weights | {"nvme_path": "both"},
        },
        "weights": {**TO_HOST, "offload_param": weights | {"nvme_path": "weights"}, **groups},
    }.items():
        yield Case(f"stage 3, bf16, {name} on NVMe", config(3, "bf16", 1, ADAMW, **members), widths=LARGE_WIDTHS)


def recommended_cases() -> Iterator[Case]:
    """Yield what ``recommend`` writes for each stage and offload, with buckets as small as the model is.

    Small tensors are sharded as well, which makes the figures sharper.
    """
    model = Described("small", Model(sum(WIDTHS[:-1]) * 100), None, "", exact=False)
    request = Request(model, Machine(gpus=2), Workload(2), nvme_path="small")
    for variant in VARIANTS:
        if not variant.uses_nvme:
            found = config_for(request, variant, TUNINGS[0], knowledge())
            found["zero_optimization"]["stage3_param_persistence_threshold"] = 0
            for section in ("offload_optimizer", "offload_param"):
                found["zero_optimization"].get(section, {}).update({"pin_memory": False} if variant.stage else {})
            yield Case(f"recommended {variant.name}", found)


CASES = (*cases(), *recommended_cases())
