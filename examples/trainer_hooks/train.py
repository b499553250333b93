"""A trainer class with hooks in a package, a subclass that overrides them, and a thin script."""

import argparse

import torch
import torch.nn as nn
from core import cleanup, setup
from regression import RegressionTrainer
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def waves(n=80):
    g = torch.Generator().manual_seed(4)
    x = torch.randn(n, 12, generator=g)
    return TensorDataset(x, torch.sin(2 * x[:, :4]) + 0.3 * x[:, 4:8])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--max-norm", type=float, default=0.25)
    parser.add_argument("--output", default="runs")
    parser.add_argument("--resume", default="")
    args = parser.parse_args()

    device = setup()
    torch.manual_seed(9)
    model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.LayerNorm(48), nn.Linear(48, 4))
    data = waves()
    loader = DataLoader(data, batch_size=args.batch_size, sampler=DistributedSampler(data))
    RegressionTrainer(args, model, loader, device).fit()
    cleanup()


if __name__ == "__main__":
    main()
