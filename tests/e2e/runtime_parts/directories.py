"""Checkpoints as DeepSpeed's directories: saved and resumed at each ZeRO stage, beside files of DDP."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepspeed
import ds_compat
import torch
import torch.distributed as dist
from common import (
    AFTER,
    BEFORE,
    BF16,
    CLIP,
    OPTIMIZERS,
    Case,
    apart,
    config,
    ddp,
    error_of,
    in_groups,
    load,
    losses_apart,
    made,
    saved,
    train,
)


def engine(stage: int, kind: str = "", before: Any = None, **more: Any) -> tuple[Any, Any]:
    """An engine that saves directories, as a converted script makes it, and the script's own optimizer."""
    model = made().to(torch.bfloat16 if "bf16" in more else torch.float32)
    stepping = OPTIMIZERS["AdamW"](in_groups(model, kind))
    groups = ds_compat.parameter_groups(stepping) if kind else None
    if before is not None:
        model.load_state_dict(before["model"])
        stepping.load_state_dict(before["optimizer"])
    wrapped = deepspeed.initialize(model=model, optimizer=stepping, config=config(stage, **more))[0]
    ds_compat.forget_first_step(wrapped)
    ds_compat.keep_directories(wrapped, groups)
    ds_compat.broadcast_buffers_each_forward(wrapped)
    return wrapped, stepping


def save(model: Any, optimizer: Any, path: str) -> None:
    """As a script does on one rank."""
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        ds_compat.save_checkpoint({**state, "epoch": 3, "global_steps": 99, "args": {"lr": [0.1]}}, path)
        ds_compat.copy_checkpoint(path, path + ".best")
    ds_compat.write_checkpoint(model)


def put_in(model: Any, optimizer: Any, state: Any) -> None:
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


def resumed(stage: int, kind: str = "", **more: Any) -> dict[str, Any]:
    dtype = torch.bfloat16 if "bf16" in more else torch.float32
    path = f"directories/{stage}{kind}{len(more)}.pt"
    if dist.get_rank() == 0:
        Path("directories").mkdir(exist_ok=True)
        torch.save("a file in its way", path)
    wrapped, own = engine(stage, kind, gradient_clipping=CLIP, **copy.deepcopy(more))
    train(wrapped, own, range(2), dtype)
    save(wrapped, own, path)
    train(wrapped, own, range(2, 4), dtype)
    rate = own.param_groups[0]["lr"] = 2e-3
    save(wrapped, own, path)
    weights = copy.deepcopy(dict(ds_compat.load_checkpoint(path, map_location="cpu")["model"]))
    expected = train(wrapped, own, AFTER, dtype)
    found: dict[str, Any] = {"is a file": float(not Path(path + ".best").is_dir())}

    state = ds_compat.load_checkpoint(path, map_location="cpu")
    found["own entries"] = apart({key: state[key] for key in state if key not in {"model", "optimizer"}},
                                 {"epoch": 3, "global_steps": 99, "args": {"lr": [0.1]}})  # fmt: skip
    other, stepping = engine(stage, kind, gradient_clipping=CLIP, **copy.deepcopy(more))
    groups = list(stepping.param_groups)
    put_in(other, stepping, state)
    found["rate"] = abs(groups[0]["lr"] - rate)
    found["groups"] = float(any(a is not b for a, b in zip(groups, stepping.param_groups, strict=True)))
    found["loaded after initialize"] = losses_apart(expected, train(other, stepping, AFTER, dtype))

    state = ds_compat.load_checkpoint(path + ".best")
    other, stepping = engine(stage, kind, before=state, gradient_clipping=CLIP, **copy.deepcopy(more))
    found["loaded before initialize"] = losses_apart(expected, train(other, stepping, AFTER, dtype))
    put_in(other, stepping, ds_compat.load_checkpoint(path))
    found["loaded after steps"] = losses_apart(expected, train(other, stepping, AFTER, dtype))
    found["weights"] = apart(weights, dict(ds_compat.load_checkpoint(path, map_location="cpu")["model"]))
    found["in a file"] = float("put it into the dictionary" not in error_of(lambda: torch.save(own.state_dict(), "x")))
    found["nowhere"] = float("FileNotFoundError" not in error_of(lambda: ds_compat.load_checkpoint("nowhere")))
    return found


def files(stage: int) -> dict[str, Any]:
    """A file of DDP is resumed, and weights alone stay a file."""
    model, stepping = ddp("AdamW")
    train(model, stepping, BEFORE)
    state = saved(model, stepping)
    expected = train(model, stepping, AFTER)
    wrapped, own = engine(stage)
    load(wrapped, own, state)
    found = {"resumed": losses_apart(expected, train(wrapped, own, AFTER))}
    if stage == 3:
        text = error_of(lambda: torch.save(wrapped.module.state_dict(), "x"))
        found["not gathered"] = float("a weight was not gathered" not in text)
    ds_compat.gather_checkpoint(wrapped, optimizer=False)
    if dist.get_rank() == 0:
        ds_compat.save_checkpoint(wrapped.module.state_dict(), f"weights{stage}.pt")
        found["weights"] = apart(dict(torch.load(f"weights{stage}.pt")), dict(model.module.state_dict()))
    ds_compat.write_checkpoint(wrapped)
    return found


def cases() -> Iterator[Case]:
    for stage in range(4):
        yield f"a directory at ZeRO {stage}", lambda s=stage: resumed(s)
        yield f"files at ZeRO {stage}", lambda s=stage: files(s)
    for stage in range(1, 4):
        yield f"frozen at ZeRO {stage}", lambda s=stage: resumed(s, "groups")
        yield f"bf16 at ZeRO {stage}", lambda s=stage: resumed(s, **BF16)
