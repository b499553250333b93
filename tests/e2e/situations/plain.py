"""A script that trains one layer."""

from __future__ import annotations

import torch

from tests.e2e.situations.script import Config, engine, train


def run(config: Config) -> None:
    """Train two steps."""
    built = engine(config, torch.nn.Linear(4, 2))
    for _ in range(2):
        train(built, torch.ones(1, 4, dtype=built.module.weight.dtype))
