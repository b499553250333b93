"""The script's gradient scaler, its clipping, and the norm that it logs."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import ds_compat
import torch
from common import CLIP, REGION, Case, apart, batch, ddp, engine, error_of, losses_apart, mean_of_ranks, saved
from torch import nn

OFFLOAD = {"offload_optimizer": {"device": "cpu"}}


def cases() -> Iterator[Case]:
    for stage in range(4):
        for clip, window in ((0.0, 1), (CLIP, 1), (CLIP, 2)):
            name = f"ZeRO {stage}, clip {clip}, window {window}"
            yield name, lambda s=stage, c=clip, w=window: scaled_steps(s, c, w)
    for stage in (1, 2, 3):
        yield f"offload at ZeRO {stage}", lambda s=stage: scaled_steps(s, CLIP, 1, zero=OFFLOAD)
    for stage in range(4):
        yield f"timm's scaler at ZeRO {stage}", lambda s=stage: called_scaler(s)
    yield "switched off", lambda: scaled_steps(2, CLIP, 1, enabled=False)
    yield "unscaled by the script", lambda: scaled_steps(0, CLIP, 1, unscales=True)


def scaled_steps(
    stage: int, clip: float, window: int, *, enabled: bool = True, unscales: bool = False, **options: Any
) -> dict[str, Any]:
    """Overflows at first, and again whenever the scale has grown."""
    more: dict[str, Any] = {"torch_autocast": REGION, **options}
    if window > 1:
        more["managed_gradient_accumulation"] = False
    runs = []
    for is_engine in (False, True):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18 * window, growth_interval=2, enabled=enabled)
        if is_engine:
            model, stepping = engine("SGD momentum", stage, gradient_clipping=clip, **copy.deepcopy(more))
            ds_compat.use_grad_scaler(model, scaler)
            ds_compat.keep_grad_norm(model)
        else:
            model, stepping = ddp("SGD momentum")
        norms, losses, scales = [], [], []
        for step in range(8):
            for part in range(window):
                if is_engine and window > 1 and not hasattr(model, "managed_gradient_accumulation"):
                    model.set_gradient_accumulation_boundary(part == window - 1)
                x, y = batch(10 * step + part)
                with torch.autocast("cpu", torch.float16):
                    loss = ((model(x).float() - y) ** 2).mean() / window
                if is_engine:
                    model.backward(loss)
                else:
                    scaler.scale(loss).backward()
                losses.append(mean_of_ranks(loss))
            if is_engine:
                if unscales:
                    scaler.unscale_(stepping)
                model.step()
                norms.append(float(ds_compat.grad_norm(model)))
            else:
                scaler.unscale_(stepping)
                norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)))
                scaler.step(stepping)
                stepping.zero_grad()
            before = scaler.get_scale()
            scaler.update()
            scales.append((before, scaler.get_scale()))
        finite = [norm if math.isfinite(norm) else -1.0 for norm in norms]
        runs.append((losses, scales, scaler.state_dict(), finite, saved(model, stepping)["optimizer"]))
    (losses, scales, state, norms, own), found = runs
    skipped = sum(before > after for before, after in scales)
    return {
        "losses": losses_apart(losses, found[0]),
        "scales": apart(scales, found[1]),
        "state of the scaler": apart(state, found[2]),
        "norms": max(abs(a - b) / abs(a) for a, b in zip(norms, found[3], strict=True)),
        "state of the optimizer": apart(own, found[4]),
        "the case says nothing": float(enabled and not 2 < skipped < 6),
    }


class NativeScaler:
    """As timm has it."""

    state_dict_key = "amp_scaler"

    def __init__(self) -> None:
        self._scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=2)

    def __call__(self, loss: Any, optimizer: Any, *, clip_grad: float, parameters: Any, create_graph: bool) -> None:
        self._scaler.scale(loss).backward(create_graph=create_graph)
        self._scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, clip_grad)
        self._scaler.step(optimizer)
        self._scaler.update()


def called_scaler(stage: int) -> dict[str, Any]:
    runs = []
    for is_engine in (False, True):
        model, stepping = (
            engine("SGD momentum", stage, gradient_clipping=CLIP, torch_autocast=REGION)
            if is_engine
            else ddp("SGD momentum")
        )
        loss_scaler: Any = NativeScaler()
        inner = loss_scaler._scaler
        if is_engine:
            loss_scaler = ds_compat.EngineScaler(model, loss_scaler)
        losses = []
        for step in range(8):
            x, y = batch(step)
            with torch.autocast("cpu", torch.float16):
                loss = ((model(x).float() - y) ** 2).mean()
            stepping.zero_grad()
            loss_scaler(loss, stepping, clip_grad=CLIP, parameters=model.parameters(), create_graph=False)
            losses.append(mean_of_ranks(loss))
        runs.append((losses, inner.state_dict()))
    found = {
        "losses": losses_apart(runs[0][0], runs[1][0]),
        "scale": apart(runs[0][1], runs[1][1]),
        "state": apart(runs[1][1], loss_scaler.state_dict()),
        "key": float(loss_scaler.state_dict_key != "amp_scaler"),
    }
    if stage == 2:
        found["another clip"] = error_of(lambda: loss_scaler(loss, stepping, clip_grad=9.0))
        found["a graph"] = error_of(lambda: loss_scaler(loss, stepping, create_graph=True))
    return found
