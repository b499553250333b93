"""A model that two processes share, layer by layer."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from tests.e2e.situations.script import Config, engine, train

WIDTH = 8


def run(config: Config) -> None:
    """Train one step."""
    layers = OrderedDict(up=nn.Linear(WIDTH, WIDTH), down=nn.Linear(WIDTH, WIDTH), out=nn.Linear(WIDTH, WIDTH))
    built = engine(config, nn.Sequential(layers))
    train(built, torch.ones(1, WIDTH))
