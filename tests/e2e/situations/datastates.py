"""The package DataStates-LLM, of which DeepSpeed uses three functions."""

from __future__ import annotations

from typing import Any

import torch

from tests.e2e.situations.script import Config, engine, pretend, train


class CheckpointEngine:
    """Saves nothing."""

    def __init__(self, config: Any, rank: int) -> None:
        """Take DeepSpeed's whole config."""

    def save(self, state: Any, path: str) -> None:
        """Save nothing."""

    def wait(self, *, persist: bool) -> None:
        """Wait for nothing."""


def run(config: Config) -> None:
    """Train one step and save."""
    pretend("datastates", CheckpointEngine=CheckpointEngine)
    built = engine(config, torch.nn.Linear(4, 2))
    train(built, torch.ones(1, 4))
    built.save_checkpoint("saved")
    train(built, torch.ones(1, 4))
