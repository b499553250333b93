"""A script that checkpoints activations with ``deepspeed.checkpointing``."""

from __future__ import annotations

import deepspeed
import torch
from torch import nn

from tests.e2e.situations.script import Config, engine


class Model(nn.Module):
    """One layer whose activations are computed again for the gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return what the layer makes of states that need a gradient."""
        return deepspeed.checkpointing.checkpoint(self.layer, states)


def run(config: Config) -> None:
    """Train one step."""
    deepspeed.checkpointing.configure(None, deepspeed_config=config)
    built = engine(config, Model())
    loss = built(torch.ones(4, requires_grad=True)).sum()
    built.backward(loss)
    built.step()
