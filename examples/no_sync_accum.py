"""Contrastive learning with gradients accumulated under no_sync(), so that they are exchanged once per update."""

import argparse
import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class PairDataset(Dataset):
    """Two noisy views of each latent vector."""

    def __init__(self, n: int, dim: int = 24, seed: int = 0):
        g = torch.Generator().manual_seed(seed)
        latent = torch.randn(n, 8, generator=g)
        first, second = torch.randn(2, 8, dim, generator=g)
        self.a = latent @ first + 0.5 * torch.randn(n, dim, generator=g)
        self.b = latent @ second + 0.5 * torch.randn(n, dim, generator=g)

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return self.a[i], self.b[i]


class Tower(nn.Module):
    def __init__(self, dim: int, width: int, out: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, width), nn.LayerNorm(width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTowers(nn.Module):
    def __init__(self, dim: int = 24, width: int = 48, out: int = 16):
        super().__init__()
        self.left = Tower(dim, width, out)
        self.right = Tower(dim, width, out)
        self.logit_scale = nn.Parameter(torch.full((1,), 1.5))

    def forward(self, a, b):
        return self.logit_scale.exp() * self.left(a) @ self.right(b).t()


def parse() -> argparse.Namespace:
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--micro-batch", type=int, default=4)
    ap.add_argument("--grad-accum", type=int, default=3)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--max-norm", type=float, default=3.0)
    ap.add_argument("--seed", type=int, default=5)
    return ap.parse_args()


def main() -> None:
    opts = parse()
    has_gpu = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if has_gpu else "gloo", timeout=timedelta(minutes=5))
    rank = int(os.environ["RANK"])
    gpu = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", gpu) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)

    torch.manual_seed(opts.seed)
    towers = TwoTowers().to(device)
    optimizer = optim.SGD(towers.parameters(), lr=opts.lr, momentum=0.8, weight_decay=1e-3)
    ddp = DDP(towers, device_ids=[gpu] if has_gpu else None, gradient_as_bucket_view=True)

    pairs = PairDataset(64, seed=opts.seed)
    sampler = DistributedSampler(pairs)
    loader = DataLoader(pairs, batch_size=opts.micro_batch, sampler=sampler, drop_last=True)

    optimizer_steps = 0
    for epoch in range(opts.epochs):
        sampler.set_epoch(epoch)
        for batch_idx, (a, b) in enumerate(loader):
            a, b = a.to(device), b.to(device)
            # the last window of an epoch may be shorter
            is_accumulating = (batch_idx + 1) % opts.grad_accum != 0 and batch_idx + 1 < len(loader)
            with ddp.no_sync() if is_accumulating else contextlib.nullcontext():
                logits = ddp(a, b)
                target = torch.arange(a.size(0), device=device)
                loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
                (loss / opts.grad_accum).backward()

            if rank == 0:
                print(f"epoch={epoch} micro={batch_idx} loss={loss.item():.9f}")
            if not is_accumulating:
                nn.utils.clip_grad_norm_(ddp.parameters(), opts.max_norm)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                optimizer_steps += 1

    if rank == 0:
        print(f"finished after {optimizer_steps} updates")
        torch.save({k: v.cpu() for k, v in ddp.module.state_dict().items()}, "towers.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
