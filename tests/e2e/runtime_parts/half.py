"""Checkpoints in half precision: the weights are half, and the optimizer works on fp32 copies of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from common import AFTER, BEFORE, BF16, FP16, Case, apart, ddp, engine, load, losses_apart, saved, train


def resumed_in_half(optimizer: str, stage: int, more: dict[str, Any]) -> dict[str, Any]:
    """An uninterrupted run of the engine beside one that is saved and resumed by another engine."""
    dtype = torch.float16 if "fp16" in more else torch.bfloat16
    wrapped, own = engine(optimizer, stage, **copy.deepcopy(more))
    train(wrapped, own, BEFORE, dtype)
    half_way = saved(wrapped, own)
    expected = train(wrapped, own, AFTER, dtype)
    at_the_end = saved(wrapped, own)
    found: dict[str, Any] = {}
    for order in ("weights first", "optimizer first"):
        wrapped, own = engine(optimizer, stage, **copy.deepcopy(more))
        train(wrapped, own, range(20, 22), dtype)
        state = copy.deepcopy(half_way)
        if order == "optimizer first":
            own.load_state_dict(state["optimizer"])
        wrapped.module.load_state_dict(state["model"])
        if order == "weights first":
            own.load_state_dict(state["optimizer"])
        found[f"saved at once, {order}"] = apart(half_way, saved(wrapped, own))
        found[f"resumed, {order}"] = losses_apart(expected, train(wrapped, own, AFTER, dtype))
        found[f"at the end, {order}"] = apart(at_the_end, saved(wrapped, own))
    wrapped, own = engine(optimizer, stage, "all trained", before=copy.deepcopy(half_way), **copy.deepcopy(more))
    found["loaded before initialize"] = losses_apart(expected, train(wrapped, own, AFTER, dtype))
    copies = half_way["optimizer"]["deepspeed"]["fp32_params"]
    found["the file has fp32 copies"] = float(not all(one.dtype == torch.float32 for one in copies.values()))
    model, stepping = ddp(optimizer)
    load(model, stepping, half_way)
    found["torch loads it"] = losses_apart(expected, train(model, stepping, AFTER)) > 0.3
    return found


def cases() -> Iterator[Case]:
    for stage in range(4):
        for more in (BF16, FP16):
            name = f"{next(iter(more))} at ZeRO {stage}"
            yield name, lambda s=stage, m=more: resumed_in_half("AdamW", s, m)
    yield (
        "bf16 with fp32 gradients at ZeRO 1",
        lambda: resumed_in_half("SGD momentum", 1, {**BF16, "data_types": {"grad_accum_dtype": "fp32"}}),
    )
