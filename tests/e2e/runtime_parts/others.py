"""What else an engine does otherwise than DDP."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Iterator
from typing import Any

import deepspeed
import ds_compat
import torch
import torch.distributed as dist
from common import (
    BEFORE,
    BF16,
    CLIP,
    OPTIMIZERS,
    Case,
    apart,
    batch,
    config,
    ddp,
    engine,
    from_rank_0,
    losses_apart,
    made,
    saved,
    train,
)
from torch import nn


def cases() -> Iterator[Case]:
    for stage in range(4):
        yield f"norms at ZeRO {stage}", lambda s=stage: norms_of(s)
        yield f"dropped gradients at ZeRO {stage}", lambda s=stage: dropped(s)
        yield f"buffers at ZeRO {stage}", lambda s=stage: buffers(s)
        yield f"copies at ZeRO {stage}", lambda s=stage: copies(s)
        yield f"the first step at ZeRO {stage}", lambda s=stage: first_step(s)
        yield f"Adagrad's schedule at ZeRO {stage}", lambda s=stage: scheduled(s)
    yield "odd parameters", odd_parameters


def norms_of(stage: int) -> dict[str, Any]:
    """Without a scaler, with and without clipping."""
    found = {}
    for clip in (0.0, CLIP):
        model, stepping = ddp("SGD")
        wrapped, own = engine("SGD", stage, gradient_clipping=clip)
        ds_compat.keep_grad_norm(wrapped)
        expected, norms = [], []
        for step in range(4):
            x, y = batch(step)
            ((model(x) - y) ** 2).mean().backward()
            expected.append(nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf))
            stepping.step()
            stepping.zero_grad()
            train(wrapped, own, [step])
            norms.append(ds_compat.grad_norm(wrapped))
        found[f"clip {clip}"] = losses_apart(list(map(float, expected)), list(map(float, norms)))
        found[f"kind, clip {clip}"] = float(
            any(a.dtype != b.dtype or b.dim() for a, b in zip(expected, norms, strict=True))
        )
    return found


def dropped(stage: int) -> dict[str, Any]:
    """A window that is not finished: its gradients do not count."""
    model, stepping = ddp("SGD momentum")
    expected = train(model, stepping, BEFORE)
    wrapped, own = engine("SGD momentum", stage, managed_gradient_accumulation=False)
    is_old = not hasattr(wrapped, "managed_gradient_accumulation")
    losses = []
    for step in BEFORE:
        x, y = batch(50 + step)
        if is_old:
            wrapped.set_gradient_accumulation_boundary(False)
        wrapped.backward(((wrapped(x) - y) ** 2).mean())
        ds_compat.drop_gradients(wrapped)
        if is_old:
            wrapped.set_gradient_accumulation_boundary(True)
        losses += train(wrapped, own, [step])
    return {"losses": losses_apart(expected, losses)}


def buffers(stage: int) -> dict[str, Any]:
    """``seen`` is written by each rank from its own data, and DDP makes it rank 0's before each forward."""
    model, stepping = ddp("SGD")
    wrapped, own = engine("SGD", stage)
    found: dict[str, Any] = {}
    for each in (model, wrapped):
        train(each, stepping if each is model else own, BEFORE)
    found["after training"] = apart(model.module.seen, wrapped.module.seen)
    with torch.no_grad():
        for each in (model, wrapped):
            each.eval()
            each(batch(0)[0])
            each.module.seen += dist.get_rank()
            each(batch(0)[0])
            each.train()
    found["after an evaluation"] = apart(model.module.seen, wrapped.module.seen)
    wrapped.module.seen.fill_(float(dist.get_rank()))
    ds_compat.broadcast_buffers(wrapped)
    found["by hand"] = float(wrapped.module.seen.sum())
    return found


def copies(stage: int) -> dict[str, Any]:
    """A copy can be pickled, and has nothing to do with the engine any more."""
    if stage == 3:
        return {}
    wrapped, own = engine("SGD", stage)
    train(wrapped, own, [0])
    copied = ds_compat.copy_of_module(wrapped.module)
    file = io.BytesIO()
    torch.save(copied, file)
    again = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    same = apart(wrapped.module.state_dict(), again.state_dict())
    kept = copy.deepcopy(wrapped.module.state_dict())
    copied.load_state_dict(made().state_dict())
    train(wrapped, own, [1])
    copied(batch(1)[0])
    hooks = sum(len(part._forward_hooks) + len(part._load_state_dict_post_hooks) for part in copied.modules())
    return {
        "same": same,
        "hooks": float(hooks),
        "the engine trains on": float(apart(kept, wrapped.module.state_dict()) == 0),
    }


def scheduled(stage: int) -> dict[str, Any]:
    """ZeRO steps another Adagrad of its own making, unless it is told not to."""
    runs = []
    for is_engine in (False, True):
        model, stepping = engine("Adagrad", stage) if is_engine else ddp("Adagrad")
        if is_engine:
            ds_compat.use_own_adagrad(model)
        schedule = torch.optim.lr_scheduler.StepLR(stepping, 1, gamma=0.5)
        losses = []
        for step in range(6):
            losses += train(model, stepping, [step])
            schedule.step()
        runs.append((losses, saved(model, stepping)))
    (expected, state), (losses, found) = runs
    return {"losses": losses_apart(expected, losses), "state": apart(state, found)}


def first_step(stage: int) -> dict[str, Any]:
    """Half precision without ZeRO takes a step when it is made; with ZeRO that is long gone."""
    model = made()
    stepping = OPTIMIZERS["AdamW"](model.parameters())
    wrapped = deepspeed.initialize(model=model, optimizer=stepping, config=config(stage, **copy.deepcopy(BF16)))[0]
    ds_compat.forget_first_step(wrapped)
    ds_compat.keep_torch_checkpoints(wrapped)
    at_first = own_state = saved(wrapped, stepping)["optimizer"]
    weights = wrapped.module.state_dict()
    names = [name for name, _ in wrapped.module.named_parameters()]
    whole = {number: weights[name].float() for number, name in enumerate(names)}
    found = {
        "fp32 copies": apart(whole, at_first["deepspeed"]["fp32_params"]),
        "state": float(bool(own_state["state"])),
    }
    train(wrapped, stepping, BEFORE, torch.bfloat16)
    steps = {float(state["step"]) for state in saved(wrapped, stepping)["optimizer"]["state"].values()}
    return {**found, "steps": float(steps != {4.0})}


def odd_parameters() -> dict[str, Any]:
    """One without dimensions and two that are not contiguous, other on each rank at first."""
    found = {}
    for stage in range(3):
        model = made()
        model.scale = nn.Parameter(torch.tensor(1.0 + dist.get_rank()))
        model.wide = nn.Parameter(torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last) + dist.get_rank())
        model.turned = nn.Parameter((torch.randn(3, 4) + dist.get_rank()).t(), requires_grad=False)
        first = from_rank_0({"scale": model.scale.data, "wide": model.wide.data, "turned": model.turned.data})
        ds_compat.send_odd_parameters(model)
        stepping = torch.optim.SGD(model.parameters(), lr=0.0)
        wrapped = deepspeed.initialize(model=model, optimizer=stepping, config=config(stage))[0]
        there = {name: getattr(wrapped.module, name).data for name in first}
        found[f"ZeRO {stage}"] = apart(first, there)
    return found
