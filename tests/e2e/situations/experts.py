"""A model with a mixture-of-experts block, named and built as AutoEP looks for one."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from tests.e2e.situations.script import Config, engine, train

EXPERTS, HIDDEN, INNER = 4, 8, 16


class Experts(nn.Module):
    """All experts in two parameters, as Transformers holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.randn(EXPERTS, 2 * INNER, HIDDEN))
        self.down_proj = nn.Parameter(torch.randn(EXPERTS, HIDDEN, INNER))


class Block(nn.Module):
    """A router and experts; AutoEP puts a block of its own in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = Experts()


class Model(nn.Module):
    """One layer whose MLP is a block of experts."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_local_experts=EXPERTS, num_experts_per_tok=2)
        self.model = nn.Module()
        self.model.layers = nn.ModuleList([nn.Module()])
        self.model.layers[0].mlp = Block()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return what the block makes of states of shape (batch, tokens, hidden)."""
        return self.model.layers[0].mlp(states)


def run(config: Config) -> None:
    """Train one step."""
    built = engine(config, Model())
    train(built, torch.randn(1, 4, HIDDEN))
