"""What a script reads and drops of its gradients, which the engine keeps in pieces."""

from __future__ import annotations

from typing import Any

import torch


def keep_grad_norm(engine: Any) -> None:
    """Let ``grad_norm(engine)`` be known at ZeRO 0 in fp32 too, where the engine measures none. After initialize.

    Replaces ``clip_fp32_gradients`` of the engine, or wraps its ``_take_model_step`` where the config does not clip;
    ``engine.get_global_grad_norm()`` is None at ZeRO 0 in fp32 in all releases.
    """
    if engine.zero_optimization() or engine.optimizer is not engine.basic_optimizer:
        return
    limit = engine.gradient_clipping() or float("inf")

    def measure() -> None:
        engine._global_grad_norm = torch.nn.utils.clip_grad_norm_(engine.module.parameters(), limit)

    if engine.gradient_clipping():
        engine.clip_fp32_gradients = measure
        return
    take_step = engine._take_model_step

    def measured_step(*args: Any, **kwargs: Any) -> None:
        scaler = getattr(engine, "torch_autocast_z0_gradscaler", None)
        if scaler is not None:
            scaler.unscale_(engine.optimizer)
        measure()
        take_step(*args, **kwargs)

    engine._take_model_step = measured_step


def grad_norm(engine: Any) -> torch.Tensor:
    """The 2-norm of all gradients before clipping, as ``clip_grad_norm_`` returned it. Valid after ``engine.step()``.

    A float32 tensor on the engine's device, the same on all ranks; inf or nan after a step that was skipped.
    """
    is_skipped = getattr(engine.optimizer, "overflow", False)  # older releases keep the norm of the step before
    norm = float("inf") if is_skipped else engine.get_global_grad_norm()
    return torch.as_tensor(norm, dtype=torch.float32, device=engine.device)


def drop_gradients(engine: Any) -> None:
    """Forget the gradients that no step has used, as ``optimizer.zero_grad()`` did. Not collective.

    At ZeRO 2 ``all_grad_tensors`` (``averaged_gradients`` before 0.17.6) holds them, which ``zero_grad`` leaves alone.
    """
    engine.optimizer.zero_grad()
    if engine.zero_optimization_stage() == 2:
        zero = engine.optimizer
        (zero.all_grad_tensors if hasattr(zero, "all_grad_tensors") else zero.averaged_gradients).clear()
