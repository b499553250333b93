"""Time-series classifier whose gradients travel in 16 bit where the command line asks for it."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Classifier(nn.Module):
    def __init__(self, channels=3, width=16, classes=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(channels, width, 5, padding=2), nn.GELU(), nn.GroupNorm(4, width),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=-1))


def register_hook(ddp, kind, rank):
    """Compress gradients as asked for; a group of None is that of all ranks."""
    if kind == "fp16":
        ddp.register_comm_hook(state=None, hook=default_hooks.fp16_compress_hook)
    elif kind == "bf16":
        ddp.register_comm_hook(state=None, hook=default_hooks.bf16_compress_hook)
    elif kind == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def series(n=128, channels=3, length=24, classes=4, seed=8):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=g)
    time = torch.arange(length) / length
    waves = torch.sin(6.28 * (labels[:, None, None] + 1) * time + torch.rand(n, channels, 1, generator=g))
    return TensorDataset(waves + 0.5 * torch.randn(n, channels, length, generator=g), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--comm-hook", choices=("none", "fp16", "bf16", "powersgd"), default="none")
    parser.add_argument("--powersgd-rank", type=int, default=2)
    args = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(29)

    model = Classifier().to(device)
    model = DDP(model, device_ids=[local_rank] if device.type == "cuda" else None, gradient_as_bucket_view=True)
    register_hook(model, args.comm_hook, args.powersgd_rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)

    dataset = series()
    sampler = DistributedSampler(dataset, seed=2)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.35)
            optimizer.step()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.8f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
