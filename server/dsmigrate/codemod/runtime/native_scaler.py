"""timm's loss scaler objects, which call backward and step themselves, with an engine that does both."""

from __future__ import annotations

from typing import Any

import torch

from dsmigrate.codemod.runtime.scaler import use_grad_scaler


class EngineScaler:
    """What timm's ``NativeScaler`` and ``ApexScaler`` do, done by the engine. Made after deepspeed.initialize.

    ``loss_scaler = EngineScaler(engine, loss_scaler)``: calls of it stay as they are, and so do ``state_dict_key`` and
    the state of a ``NativeScaler``, whose ``_scaler`` (private to timm) goes on scaling. The engine clips, by the
    config's ``gradient_clipping``, which has to be the ``clip_grad`` of the calls. An ``ApexScaler`` becomes torch's.
    """

    def __init__(self, engine: Any, loss_scaler: Any) -> None:
        self.engine = engine
        self.state_dict_key = loss_scaler.state_dict_key
        self.grad_scaler = getattr(loss_scaler, "_scaler", None) or torch.amp.GradScaler(engine.device.type)
        self.state_dict, self.load_state_dict = self.grad_scaler.state_dict, self.grad_scaler.load_state_dict
        use_grad_scaler(engine, self.grad_scaler)

    def __call__(
        self,
        loss: torch.Tensor,
        optimizer: Any,
        clip_grad: float | None = None,
        clip_mode: str = "norm",
        parameters: Any = None,
        create_graph: bool = False,
        need_update: bool = True,
    ) -> None:
        """Run backward, and with ``need_update`` clip, step, and update the scale."""
        if create_graph:
            raise NotImplementedError("engine.backward keeps no graph for second derivatives")
        if clip_grad is not None and (clip_mode != "norm" or clip_grad != self.engine.gradient_clipping()):
            raise ValueError(
                f"clip_grad={clip_grad} by {clip_mode}, but the engine clips the norm to "
                f"{self.engine.gradient_clipping()}: set gradient_clipping in the config"
            )
        self.engine.backward(loss)
        if need_update:
            self.engine.step()
            self.grad_scaler.update()
