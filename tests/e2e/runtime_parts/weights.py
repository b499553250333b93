"""Weights that are loaded or changed after deepspeed.initialize, and states of parts of the model."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import deepspeed
import ds_compat
import torch
from common import BF16, Case, apart, engine, error_of, made, train


def cases() -> Iterator[Case]:
    for stage in range(4):
        for more in ({}, BF16):
            yield f"{'bf16' if more else 'fp32'} at ZeRO {stage}", lambda s=stage, m=more: loaded_weights(s, m)


def loaded_weights(stage: int, more: dict[str, Any]) -> dict[str, Any]:
    """With a learning rate of zero, what is loaded has to be there after a step."""
    dtype = torch.bfloat16 if more else torch.float32
    wrapped, own = engine("SGD", stage, **copy.deepcopy(more))
    train(wrapped, own, [0], dtype)
    for group in own.param_groups:
        group["lr"] = 0.0
    found: dict[str, Any] = {}
    other = {name: torch.randn(value.shape, generator=torch.Generator().manual_seed(7)).to(dtype).float()
             for name, value in made().state_dict().items()}  # fmt: skip

    def is_there(what: str, prefix: str = "") -> None:
        train(wrapped, own, [1], dtype)
        whole = {name: value.float() for name, value in wrapped.module.state_dict().items() if name != "seen"}
        there = {name: value for name, value in whole.items() if name.startswith(prefix)}
        found[what] = apart({name: other[name] for name in there}, there)

    wrapped.module.last.load_state_dict({k[5:]: v for k, v in other.items() if k.startswith("last.")})
    is_there("a part", "last.")
    wrapped.module.load_state_dict(other)
    is_there("all")
    wrapped.load_state_dict({f"module.{name}": value for name, value in other.items()})
    is_there("through the engine")
    found["keys of the engine"] = float({f"module.{name}" for name in other} != wrapped.state_dict().keys())
    found["a part's state"] = apart(
        {name: value for name, value in wrapped.module.state_dict().items() if name.startswith("last.")},
        {f"last.{name}": value for name, value in wrapped.module.last.state_dict().items()},
    )
    parameters = list(wrapped.module.parameters())
    with torch.no_grad(), deepspeed.zero.GatheredParameters(parameters, modifier_rank=0, enabled=stage == 3):
        for parameter in parameters:
            parameter.mul_(2)
    ds_compat.refresh_masters(wrapped)
    other = {name: value * 2 for name, value in other.items()}
    is_there("changed in place")
    other["first.0.weight"] = torch.zeros(2, 2)
    found["another shape"] = error_of(lambda: wrapped.module.load_state_dict(other))
    return found
