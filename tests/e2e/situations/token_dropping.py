"""A script that wraps the layers of its model with ``convert_to_random_ltd``."""

from __future__ import annotations

import torch
from deepspeed.ops.random_ltd import dropping_utils
from deepspeed.runtime.data_pipeline.data_routing.helper import convert_to_random_ltd
from torch import nn

from tests.e2e.situations.script import Config, engine, train

BATCH, TOKENS, HIDDEN = 1, 32, 4


class Kernels:
    """The three kernels of random-LTD, in torch."""

    def token_sort_(self, indices: torch.Tensor, length: int) -> torch.Tensor:  # noqa: ARG002
        """Return token numbers in rising order."""
        return indices.sort(dim=-1).values

    def token_gather(self, states: torch.Tensor, indices: torch.Tensor, batch_first: bool) -> torch.Tensor:
        """Return the states of the chosen tokens."""
        return states.gather(int(batch_first), self._wide(indices, states, batch_first))

    def token_scatter_(
        self, states: torch.Tensor, chosen: torch.Tensor, indices: torch.Tensor, batch_first: bool
    ) -> torch.Tensor:
        """Put the states of the chosen tokens back."""
        return states.scatter_(int(batch_first), self._wide(indices, states, batch_first), chosen)

    def _wide(self, indices: torch.Tensor, states: torch.Tensor, batch_first: bool) -> torch.Tensor:
        rows = indices.long() if batch_first else indices.long().t()
        return rows.unsqueeze(-1).expand(*rows.shape, states.shape[-1])


class Layer(nn.Module):
    """A layer that takes its attention mask by name."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, states: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return states of the shape of ``states``; the mask has to fit them."""
        assert mask is None or mask.shape[-1] == states.shape[1]
        return self.linear(states)


class Model(nn.Module):
    """Three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer(), Layer()])

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return what the layers make of states of shape (batch, tokens, hidden)."""
        for layer in self.layers:
            states = layer(states, mask=mask)
        return states


def run(config: Config) -> None:
    """Convert the layers, and train one step in which tokens are dropped."""
    dropping_utils.random_ltd_module = Kernels()
    built = engine(config, Model())
    built = convert_to_random_ltd(built, Layer)
    train(built, torch.randn(BATCH, TOKENS, HIDDEN), torch.ones(BATCH, 1, TOKENS, TOKENS))
