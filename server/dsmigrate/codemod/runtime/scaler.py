"""The script's own gradient scaler scales the losses of the engine and decides which of its steps are skipped."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


def use_grad_scaler(engine: Any, scaler: Any) -> None:
    """Let the script's ``GradScaler`` work through the engine. After deepspeed.initialize; not collective.

    ``engine.backward(loss)`` then scales the loss, and ``engine.step()`` unscales, clips as the config says, and skips
    what overflowed, at every ZeRO stage. ``scaler.update()`` stays in the script after each step; the scale, its growth
    and ``scaler.state_dict()`` are the scaler's. DeepSpeed's own scaling under ``torch_autocast`` is switched off: at
    ZeRO 1 to 3 its scale never falls after an overflow. Uses ``torch_autocast_gradscaler``, ``check_overflow()`` and
    ``overflow`` of ZeRO's optimizer, which looks for overflows in fp32 by itself in the newest releases only.
    """
    if not engine.zero_optimization():
        scale_without_zero(engine, scaler)
        return
    zero, backward, engine_step, step = engine.optimizer, engine.backward, engine.step, engine.optimizer.step
    zero.torch_autocast_gradscaler = None
    if not scaler.is_enabled():
        return
    probe = torch.nn.Parameter(torch.zeros(1, device=engine.device))
    stand_in = torch.optim.SGD([probe], lr=0.0)

    def scaled_backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        zero.override_loss_scale(scaler.get_scale())
        return backward(loss, *args, **kwargs)

    def checked_step(*args: Any, **kwargs: Any) -> None:
        zero.check_overflow()
        step(*args, **kwargs)

    def told_step(*args: Any, **kwargs: Any) -> None:
        steps = engine.global_steps
        engine_step(*args, **kwargs)
        if engine.global_steps != steps:  # not within an accumulation window
            scaler.scale(probe.detach())  # lets a scaler that never saw a tensor set itself up
            probe.grad = torch.full_like(probe, float("inf") if zero.overflow else 0.0)
            scaler.step(stand_in)  # what update() will go by

    zero.step, engine.backward, engine.step = checked_step, scaled_backward, told_step


def scale_losses(engine: Any, *, enabled: bool = True, scale: Any = None) -> Any:
    """Scale the losses as apex did: by a scale that halves at overflows and grows later, or by a fixed ``scale``.

    After deepspeed.initialize; not collective. Gives the scaler, whose state belongs into checkpoints.
    """
    fixed = None if scale in (None, "dynamic") else float(scale)
    scaler = torch.amp.GradScaler(torch.device(engine.device).type, init_scale=fixed or 2.0**16, enabled=enabled)
    use_grad_scaler(engine, scaler)
    step = engine.step

    def updating_step(*args: Any, **kwargs: Any) -> None:
        steps = engine.global_steps
        step(*args, **kwargs)
        if enabled and engine.global_steps != steps:  # not within an accumulation window
            scaler.update(fixed)

    engine.step = updating_step
    return scaler


def scale_without_zero(engine: Any, scaler: Any) -> None:
    """The same at ZeRO 0, where DeepSpeed from 0.18.0 on takes a scaler in ``torch_autocast_z0_gradscaler``.

    For earlier releases ``backward`` and ``_take_model_step`` of the engine do what it does there.
    """
    is_known = hasattr(engine, "torch_autocast_z0_gradscaler")
    engine.torch_autocast_z0_gradscaler = StepScaler(scaler) if scaler.is_enabled() else None
    if is_known or not scaler.is_enabled():
        return
    optimizer, backward, take_model_step = engine.optimizer, engine.backward, engine._take_model_step

    def scaled_backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return backward(scaler.scale(loss), *args, **kwargs)

    def scaled_model_step(*args: Any, **kwargs: Any) -> None:
        step = optimizer.step

        def step_if_finite(*_: Any, **__: Any) -> None:
            optimizer.step = step
            scaler.step(optimizer)

        engine.torch_autocast_z0_gradscaler.unscale_(optimizer)
        optimizer.step = step_if_finite
        take_model_step(*args, **kwargs)

    engine.backward, engine._take_model_step = scaled_backward, scaled_model_step


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
