"""What goes wrong says so, and nothing is held longer than it is needed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import deepspeed
import ds_compat
import torch
import torch.distributed as dist
from common import (
    BEFORE,
    OPTIMIZERS,
    Case,
    apart,
    config,
    ddp,
    engine,
    error_of,
    from_rank_0,
    in_groups,
    made,
    saved,
    train,
)


def cases() -> Iterator[Case]:
    for stage in (1, 2, 3):
        yield f"ZeRO {stage}", lambda s=stage: told(s)
    yield "others", refusals


def told(stage: int) -> dict[str, Any]:
    wrapped, own = engine("AdamW", stage, timeout=1.0)
    rank = dist.get_rank()
    found: dict[str, Any] = {}
    train(wrapped, own, [0])
    found["alone"] = error_of(own.state_dict) if rank == 0 else ""
    if stage == 3:
        found["weights alone"] = error_of(wrapped.module.state_dict) if rank == 0 else ""
    dist.barrier()
    ds_compat.gather_checkpoint(wrapped)
    found["not kept"] = error_of(own.state_dict) if rank else ""
    if rank == 0:
        found["twice"] = apart(saved(wrapped, own), saved(wrapped, own))
    train(wrapped, own, [1])
    found["old"] = error_of(own.state_dict)
    if stage == 3:
        found["weights old"] = error_of(wrapped.module.state_dict)
    train(wrapped, own, [2])
    found["freed"] = float(wrapped.torch_checkpoints.gathered is not None)
    ds_compat.gather_checkpoint(wrapped, keep=True)
    state = saved(wrapped, own)
    found["kept by all"] = apart(from_rank_0(state["optimizer"]), state["optimizer"])
    own.load_state_dict(state["optimizer"])
    found["changed since"] = error_of(own.state_dict)
    return found


def refusals() -> dict[str, Any]:
    found: dict[str, Any] = {}
    model = made()
    stepping = OPTIMIZERS["AdamW"](in_groups(model, "frozen"))
    wrapped = deepspeed.initialize(model=model, optimizer=stepping, config=config(1))[0]
    found["frozen"] = error_of(lambda: ds_compat.keep_torch_checkpoints(wrapped))
    found["not kept"] = error_of(lambda: ds_compat.gather_checkpoint(wrapped))
    found["no engine"] = error_of(lambda: ds_compat.gather_checkpoint(made()))
    wrapped, own = engine("AdamW", 2)
    train(wrapped, own, [0])
    state = own.state_dict()
    state["param_groups"][0]["params"].pop()
    found["other groups"] = error_of(lambda: own.load_state_dict(state))
    model, stepping = ddp("AdamW")
    train(model, stepping, BEFORE)
    state = copy.deepcopy(stepping.state_dict())
    state["state"][2]["step"] += 3
    with warnings.catch_warnings(record=True) as told_of:
        warnings.simplefilter("always")
        own.load_state_dict(state)
    found["other steps"] = " ".join(str(one.message) for one in told_of)
    state["state"][0]["row_var"] = torch.zeros(2, 1)
    found["by rows"] = error_of(lambda: own.load_state_dict(state))
    return found
