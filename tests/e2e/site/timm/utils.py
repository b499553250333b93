"""The scaler of timm.utils, behaving as timm 1.0's does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class NativeScaler:
    """Runs backward, clipping and step of a batch on a gradient scaler."""

    state_dict_key = "amp_scaler"

    def __init__(self, device: str = "cuda") -> None:
        self._scaler = torch.amp.GradScaler(device=device)

    def __call__(  # noqa: PLR0917 - as there
        self,
        loss: torch.Tensor,
        optimizer: torch.optim.Optimizer,
        clip_grad: float | None = None,
        clip_mode: str = "norm",
        parameters: Iterable[torch.nn.Parameter] | None = None,
        create_graph: bool = False,  # noqa: FBT002 - as there
        need_update: bool = True,  # noqa: FBT002 - as there
    ) -> None:
        """Accumulate the gradients of a loss; with ``need_update`` clip them by their norm and step."""
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:
            if clip_grad is not None:
                assert clip_mode == "norm"
                assert parameters is not None
                self._scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)
            self._scaler.update()

    def state_dict(self) -> dict[str, Any]:
        """The scale and its schedule."""
        return self._scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with a scale and its schedule."""
        self._scaler.load_state_dict(state_dict)
