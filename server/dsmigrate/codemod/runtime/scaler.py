"""The script's own gradient scaler scales the losses of the engine and decides which of its steps are skipped."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


def use_grad_scaler(engine: Any, scaler: Any) -> None:
    """Let the script's ``GradScaler`` work through the engine. After deepspeed.initialize; not collective.

    ``engine.backward(loss)`` then scales the loss, and ``engine.step()`` unscales, clips as the config says and skips
    what overflowed, at every ZeRO stage. ``scaler.update()`` stays in the script behind each step; the scale, its
    growth and ``scaler.state_dict()`` are the scaler's. DeepSpeed's own scaling under ``torch_autocast`` is switched
    off: at ZeRO 1 to 3 its scale never falls after an overflow. From DeepSpeed 0.18.0 on: those before step where the
    scaler would skip, or know no scaler at ZeRO 0. Uses ``torch_autocast_z0_gradscaler`` of the engine, and
    ``torch_autocast_gradscaler`` and ``overflow`` of its optimizer; ``override_loss_scale`` is public.
    """
    if scaler.is_enabled() and not hasattr(engine, "torch_autocast_z0_gradscaler"):
        raise NotImplementedError("a GradScaler needs DeepSpeed 0.18.0 or later: switch it off, or train in bfloat16")
    zero, backward, step = engine.optimizer, engine.backward, engine.step
    if not engine.zero_optimization():
        engine.torch_autocast_z0_gradscaler = StepScaler(scaler) if scaler.is_enabled() else None
        return
    zero.torch_autocast_gradscaler = None
    if not scaler.is_enabled():
        return
    probe = torch.nn.Parameter(torch.zeros(1, device=engine.device))
    optimizer = torch.optim.SGD([probe], lr=0.0)

    def scaled_backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        zero.override_loss_scale(scaler.get_scale())
        return backward(loss, *args, **kwargs)

    def told_step(*args: Any, **kwargs: Any) -> None:
        steps = engine.global_steps
        step(*args, **kwargs)
        if engine.global_steps != steps:  # not within an accumulation window
            scaler.scale(probe.detach())  # lets a scaler that never saw a tensor set itself up
            probe.grad = torch.full_like(probe, float("inf") if zero.overflow else 0.0)
            scaler.step(optimizer)  # what update() will go by

    engine.backward, engine.step = scaled_backward, told_step


class StepScaler:
    """What the engine calls at ZeRO 0: the script's scaler, except that the script itself updates it."""

    def __init__(self, scaler: Any) -> None:
        self.scale, self.step = scaler.scale, scaler.step
        self._unscale = scaler.unscale_

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale the gradients, unless the script has done so already."""
        with contextlib.suppress(RuntimeError):
            self._unscale(optimizer)

    def update(self) -> None:
        """Leave that to the script."""
