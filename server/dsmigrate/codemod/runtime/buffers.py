"""Buffers are rank 0's on all ranks, as under DDP; the engine sends none."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


@torch.no_grad()
def broadcast_buffers(engine: Any) -> None:
    """Send rank 0's buffers to all ranks now, as DDP did when it was made. Collective.

    Also for a forward of ``engine.module``, and before the first forward of a window under no_sync.
    """
    alike: dict[Any, list[torch.Tensor]] = {}
    for buffer in engine.module.buffers():
        alike.setdefault((buffer.dtype, buffer.device), []).append(buffer)
    for buffers in alike.values():
        sent = torch.cat([buffer.flatten() for buffer in buffers])
        dist.broadcast(sent, src=0)
        for buffer, part in zip(buffers, torch.split(sent, [buffer.numel() for buffer in buffers])):
            buffer.copy_(part.view_as(buffer))


def broadcast_buffers_each_forward(engine: Any) -> None:
    """Send rank 0's buffers now, and before each forward of the engine that follows one with gradients, as DDP did.

    Once, after deepspeed.initialize. Collective, and so is each such forward: all ranks run it.
    """
    broadcast_buffers(engine)
    is_due = True

    def before(*_: Any) -> None:
        if is_due:
            broadcast_buffers(engine)

    def after(*_: Any) -> None:
        nonlocal is_due
        is_due = torch.is_grad_enabled()

    engine.register_forward_pre_hook(before)
    engine.register_forward_hook(after)
