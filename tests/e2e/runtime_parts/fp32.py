"""Checkpoints in fp32: files of DDP resumed by the engine, and files of the engine resumed by DDP."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from typing import Any

import ds_compat
import torch.distributed as dist
from common import AFTER, BEFORE, Case, apart, ddp, engine, from_rank_0, load, losses_apart, saved, train

EVERYTHING = "RUNTIME_PARTS_EVERYTHING" in os.environ
STAGES = {
    "AdamW": (0, 1, 2, 3),
    "Adam amsgrad": (3,),
    "SGD": (1,),
    "SGD momentum": (0, 2, 3),
    "Adagrad": (1, 3),
    "RMSprop": (2,),
    "NAdam": (1,),
    "Adamax": (3,),
}
"""The ZeRO stages at which an optimizer is tried; with that variable, all."""
LAYOUTS: tuple[tuple[int, dict[str, Any]], ...] = (
    (1, {"round_robin_gradients": True}),
    (2, {"round_robin_gradients": True}),
    (1, {"offload_optimizer": {"device": "cpu"}}),
    (2, {"offload_optimizer": {"device": "cpu"}}),
    (3, {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}),
    (3, {"sub_group_size": 20}),
    (3, {"stage3_param_persistence_threshold": 10}),
)
"""How ZeRO may lay out what it holds."""


def resumed(optimizer: str, stage: int, kind: str = "", **more: Any) -> dict[str, Any]:
    """DDP's file resumed by the engine, in three ways, and the engine's file resumed by DDP."""
    model, stepping = ddp(optimizer, kind)
    train(model, stepping, BEFORE)
    for group in stepping.param_groups:
        group["lr"] *= 0.5  # as a schedule does: what is loaded counts, not what the optimizer is made with
    half_way = saved(model, stepping)
    expected = train(model, stepping, AFTER)
    at_the_end = saved(model, stepping)
    found: dict[str, Any] = {}

    wrapped, own = engine(optimizer, stage, kind, before=copy.deepcopy(half_way), **copy.deepcopy(more))
    found["saved at once, loaded before initialize"] = apart(half_way["optimizer"], saved(wrapped, own)["optimizer"])
    found["loaded before initialize"] = losses_apart(expected, train(wrapped, own, AFTER))

    wrapped, own = engine(optimizer, stage, kind, **copy.deepcopy(more))
    load(wrapped, own, half_way)
    found["saved at once"] = apart(half_way, saved(wrapped, own))
    found["loaded after initialize"] = losses_apart(expected, train(wrapped, own, AFTER))
    found["state saved by all"] = apart(at_the_end, saved(wrapped, own))

    load(wrapped, own, half_way)
    found["loaded after steps"] = losses_apart(expected, train(wrapped, own, AFTER))
    ds_compat.gather_checkpoint(wrapped)
    found["state saved by rank 0"] = apart(at_the_end, saved(wrapped, own)) if dist.get_rank() == 0 else 0.0
    state = from_rank_0(saved(wrapped, own) if dist.get_rank() == 0 else None)
    load(model, stepping, state)
    going_on = train(model, stepping, range(8, 12))
    load(model, stepping, at_the_end)
    found["resumed by DDP"] = losses_apart(train(model, stepping, range(8, 12)), going_on)
    return found


def cases() -> Iterator[Case]:
    for optimizer, stages in STAGES.items():
        for stage in range(4) if EVERYTHING else stages:
            yield f"{optimizer} at ZeRO {stage}", lambda o=optimizer, s=stage: resumed(o, s)
    for kind in ("frozen", "groups"):
        for stage in range(4):
            yield f"{kind} at ZeRO {stage}", lambda k=kind, s=stage: resumed("AdamW", s, k)
    for stage, zero in LAYOUTS:
        yield f"{zero} at ZeRO {stage}", lambda s=stage, z=zero: resumed("SGD momentum", s, "groups", zero=z)
