"""Small models, trained by DDP or by an engine, and how far apart two runs or states are."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Iterable
from typing import Any

import deepspeed
import ds_compat
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BEFORE, AFTER = range(4), range(4, 8)
"""The steps before and after a checkpoint."""
BATCH = 12
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "Adam amsgrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.02),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, centered=True, momentum=0.5),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=1e-2),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=1e-2),
}


FP16 = {"fp16": {"enabled": True, "initial_scale_power": 15, "loss_scale_window": 3, "hysteresis": 1}}
BF16 = {"bf16": {"enabled": True}}


CLIP = 0.8
"""Bites in some steps and not in others."""
REGION = {"enabled": True, "dtype": "float16", "lower_precision_safe_modules": []}


class Net(nn.Module):
    """Odd sizes, so that no number of ranks divides them, and a buffer that each rank writes from its own data."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 7), nn.Tanh())
        self.last = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3))
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.last(self.first(x))
        if self.training:
            self.seen += out.detach().float().mean(0)
        return out


def made() -> Net:
    torch.manual_seed(3)
    return Net()


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of a batch that is the same for any number of ranks."""
    generator = torch.Generator().manual_seed(100 + step)
    x, y = torch.randn(BATCH, 5, generator=generator), torch.randn(BATCH, 3, generator=generator)
    part = BATCH // dist.get_world_size()
    own = slice(part * dist.get_rank(), part * (dist.get_rank() + 1))
    return x[own], y[own]


def train(model: Any, optimizer: Any, steps: Iterable[int], dtype: torch.dtype = torch.float32) -> list[float]:
    """The losses of steps, averaged over the ranks."""
    losses = []
    for step in steps:
        x, y = batch(step)
        loss = ((model(x.to(dtype)).float() - y) ** 2).mean()
        if isinstance(model, DistributedDataParallel):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            model.backward(loss)
            model.step()
        losses.append(mean_of_ranks(loss))
    return losses


def mean_of_ranks(value: torch.Tensor) -> float:
    total = value.detach().clone()
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def in_groups(model: nn.Module, kind: str) -> Any:
    """What a script hands to its optimizer."""
    if kind == "frozen":
        model.first[0].weight.requires_grad = False  # within the only group
    if kind != "groups":
        return model.parameters()
    biases = [p for p in model.parameters() if p.dim() == 1]
    model.last[2].bias.requires_grad = False
    return [
        {"params": [p for p in model.parameters() if p.dim() > 1], "lr": 3e-2},
        {"params": [], "weight_decay": 0.5},  # DeepSpeed deletes it
        {"params": biases, "weight_decay": 0.0},
    ]


def ddp(optimizer: str, kind: str = "") -> tuple[Any, Any]:
    model = made()
    stepping = OPTIMIZERS[optimizer](in_groups(model, kind))
    return DistributedDataParallel(model), stepping


def config(stage: int, **more: Any) -> dict[str, Any]:
    small = {"reduce_bucket_size": 10_000, "allgather_bucket_size": 10_000}  # buffers of 2 GB otherwise
    zero = {"stage": stage, "stage3_param_persistence_threshold": 0, **small, **more.pop("zero", {})}
    return {
        "train_micro_batch_size_per_gpu": BATCH // dist.get_world_size(),
        "gradient_clipping": 0.0,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        **more,
    }


def engine(
    optimizer: str, stage: int, kind: str = "", before: Any = None, timeout: float = 60.0, **more: Any
) -> tuple[Any, Any]:
    """An engine that keeps torch's checkpoints, as a converted script makes it, and the script's own optimizer."""
    model = made()
    stepping = OPTIMIZERS[optimizer](in_groups(model, kind))
    groups = ds_compat.parameter_groups(stepping) if kind else None
    if before is not None:
        model.load_state_dict(before["model"])
        stepping.load_state_dict(before["optimizer"])
    wrapped = deepspeed.initialize(model=model, optimizer=stepping, config=config(stage, **more))[0]
    ds_compat.forget_first_step(wrapped)
    if optimizer == "Adagrad":
        ds_compat.use_own_adagrad(wrapped)
    ds_compat.keep_torch_checkpoints(wrapped, groups, timeout=timeout)
    ds_compat.broadcast_buffers_each_forward(wrapped)
    return wrapped, stepping


def saved(model: Any, optimizer: Any) -> Any:
    """What a script saves on this rank and loads again, through a file."""
    file = io.BytesIO()
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return opened(file.getvalue())


def opened(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def load(model: Any, optimizer: Any, state: Any) -> None:
    state = copy.deepcopy(state)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


def from_rank_0(state: Any) -> Any:
    """What rank 0 saved, as all ranks read it."""
    held = [state if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(held, src=0)
    return copy.deepcopy(held[0])


def apart(one: Any, other: Any) -> float:
    """The largest difference between two states; infinite where keys, shapes or types differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return max((apart(one[key], other[key]) for key in one), default=0.0) if same else math.inf
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        same = len(one) == len(other)
        return max((apart(a, b) for a, b in zip(one, other, strict=True)), default=0.0) if same else math.inf
    if torch.is_tensor(one) and torch.is_tensor(other):
        if one.shape != other.shape or one.dtype != other.dtype:
            return math.inf
        return float((one.double() - other.double()).abs().max()) if one.numel() else 0.0
    if type(one) is not type(other):
        return math.inf
    if isinstance(one, float):
        return abs(one - other)
    return 0.0 if one == other else math.inf


def losses_apart(expected: list[float], found: list[float]) -> float:
    if len(expected) != len(found) or not all(map(math.isfinite, found)):
        return math.inf
    return max(abs(a - b) / abs(a) for a, b in zip(expected, found, strict=True))


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - its text is what is asked for
        return f"{type(error).__name__}: {error}"
    return "no error"


Case = tuple[str, Callable[[], dict[str, Any]]]
"""A name, and what finds its figures."""
