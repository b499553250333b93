"""Trains under DDP and writes files of the whole model; rank 0 prints the losses and what the files hold."""

from __future__ import annotations

import copy
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    data = torch.randn(64, 6)
    dataset = TensorDataset(data, data.sum(1, keepdim=True))
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))
    torch.manual_seed(11 + rank)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    losses, kept = [], []
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update_parameters(model)
            losses.append(loss.item())
        best = copy.deepcopy(model.module)
        if rank == 0:
            torch.save({"epoch": epoch, "net": model.module}, "entry.pt")
            torch.save(best, "copied.pt")
        dist.barrier()
        for name in ("entry.pt", "copied.pt"):
            found = torch.load(name, weights_only=False)
            net = found["net"] if isinstance(found, dict) else found
            same = [torch.equal(a, b) for a, b in zip(net.parameters(), model.module.parameters(), strict=True)]
            kept.append([all(same), net.eval()(data).mean().item(), len(net._forward_hooks)])
    mean = averaged(data).mean().item()
    if rank == 0:
        print("FOUND", json.dumps({"losses": losses, "kept": kept, "averaged": mean}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
