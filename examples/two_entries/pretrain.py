"""Two scripts share one package: this one learns to restore shuffled rows."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from lab import Stepper, finish, start
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def rows(n=72):
    g = torch.Generator().manual_seed(5)
    clean = torch.randn(n, 16, generator=g).cumsum(1) / 4
    return TensorDataset(clean + 0.3 * torch.randn(n, 16, generator=g), clean)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--max-norm", type=float, default=0.12)
    args = parser.parse_args()

    device = start()
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(16, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 16)).to(device)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    stepper = Stepper(optimizer, model.parameters(), args.every, args.max_norm)
    data = rows()
    loader = DataLoader(data, batch_size=args.batch_size, sampler=DistributedSampler(data))
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for noisy, clean in loader:
            stepper(F.mse_loss(model(noisy.to(device)), clean.to(device)))
    finish()


if __name__ == "__main__":
    main()
