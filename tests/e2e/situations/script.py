"""What the scripts of the situations have in common."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import deepspeed
import torch

Config = dict[str, Any]


def engine(config: Config, model: torch.nn.Module) -> Any:
    """Return the engine around a model, with torch's AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]


def train(engine: Any, *inputs: torch.Tensor, **named: torch.Tensor) -> None:
    """Take one training step."""
    loss = engine(*inputs, **named).float().sum()
    engine.backward(loss)
    engine.step()


def pretend(name: str, **content: object) -> None:
    """Put a module in the place of one that need not be installed."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    vars(sys.modules[name]).update(content)
