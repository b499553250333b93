"""A model that is made under ``deepspeed.zero.Init`` and only asked for outputs."""

from __future__ import annotations

import deepspeed
import torch
from torch import nn

from tests.e2e.situations.script import Config

WIDTH = 16


def run(config: Config) -> None:
    """Make the model and ask it once."""
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    built, *_ = deepspeed.initialize(model=model, config=config)
    built.eval()
    with torch.no_grad():
        built(torch.ones(1, WIDTH, dtype=torch.bfloat16))
