"""A model as a list of layers, which makes a pipeline engine, here of one stage."""

from __future__ import annotations

import torch
from deepspeed.pipe import LayerSpec, PipelineModule
from torch import nn

from tests.e2e.situations.script import Config, engine


def run(config: Config) -> None:
    """Train one batch."""
    model = PipelineModule([LayerSpec(nn.Linear, 4, 4) for _ in range(2)], num_stages=1, loss_fn=nn.MSELoss())
    built = engine(config, model)
    built.train_batch(iter([(torch.ones(1, 4), torch.ones(1, 4))] * 2))
