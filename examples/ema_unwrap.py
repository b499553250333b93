"""Denoising-diffusion training with an exponential moving average of the weights.

Checkpoints hold the model, its average and the optimizer; sampling uses the average only.
"""

import argparse
import math
import os
from copy import deepcopy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

TIMESTEPS = 50


def is_parallel(model):
    return isinstance(model, (DataParallel, DistributedDataParallel))


def unwrap(model):
    """De-parallelize a model: returns the single-GPU model if it is wrapped."""
    return model.module if is_parallel(model) else model


class ModelEMA:
    """Keeps a moving average of everything in the model's state dict."""

    def __init__(self, model, decay=0.9):
        self.ema = deepcopy(unwrap(model)).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        msd = unwrap(model).state_dict()
        for k, v in self.ema.state_dict().items():
            if v.dtype.is_floating_point:
                v.mul_(self.decay).add_(msd[k].detach(), alpha=1 - self.decay)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(1000.0) * torch.arange(half, device=t.device) / half)
        angles = t[:, None].float() * freqs[None]
        return self.mlp(torch.cat([angles.cos(), angles.sin()], dim=-1))


class Denoiser(nn.Module):
    def __init__(self, dim=16, width=48):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.inp = nn.Linear(dim, width)
        self.norm = nn.LayerNorm(width)
        self.mid = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
        self.out = nn.Linear(width, dim)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        h = h + self.mid(self.norm(h))
        return self.out(h)


def diffusion_loss(model, x0, alphas_cumprod, rng):
    t = torch.randint(0, TIMESTEPS, (x0.size(0),), generator=rng)
    noise = torch.randn(x0.shape, generator=rng)
    t, noise = t.to(x0.device), noise.to(x0.device)
    a = alphas_cumprod[t][:, None]
    prediction = model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t)
    return (prediction - noise).pow(2).mean()


def main(args):
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    assert args.global_batch_size % dist.get_world_size() == 0, "Batch size must be divisible by world size."
    rank = dist.get_rank()
    local = int(os.environ["LOCAL_RANK"]) if cuda else 0
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    torch.manual_seed(args.global_seed * dist.get_world_size() + rank)
    if rank == 0:
        os.makedirs(args.results_dir, exist_ok=True)

    model = Denoiser().to(device)
    if args.pretrained:
        model.load_state_dict(torch.load(args.pretrained, map_location=device))
    model = DistributedDataParallel(model, device_ids=[local] if cuda else None)
    ema = ModelEMA(model, decay=args.ema_decay)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0)

    train_steps = 0
    if args.ckpt:
        state = torch.load(args.ckpt, map_location=device)
        unwrap(model).load_state_dict(state["model"])
        ema.ema.load_state_dict(state["ema"])
        opt.load_state_dict(state["opt"])
        train_steps = state["train_steps"]

    g = torch.Generator().manual_seed(3)
    centres = torch.randn(6, 16, generator=g) * 2
    points = centres[torch.randint(0, 6, (96,), generator=g)] + 0.2 * torch.randn(96, 16, generator=g)
    dataset = TensorDataset(points)
    sampler = DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=rank, shuffle=True,
                                 seed=args.global_seed)
    loader = DataLoader(dataset, batch_size=args.global_batch_size // dist.get_world_size(), shuffle=False,
                        sampler=sampler, drop_last=True)
    alphas_cumprod = torch.cumprod(1 - torch.linspace(1e-3, 0.12, TIMESTEPS), 0).to(device)

    model.train()
    first_epoch = train_steps // len(loader)
    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            rng = torch.Generator().manual_seed(7919 * train_steps + rank)
            loss = diffusion_loss(model, x.to(device), alphas_cumprod, rng)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
            train_steps += 1
            if train_steps % args.log_every == 0:
                avg_loss = loss.detach().clone()
                dist.all_reduce(avg_loss, op=dist.ReduceOp.SUM)
                avg_loss = avg_loss.item() / dist.get_world_size()
                if rank == 0:
                    print(f"(step={train_steps:07d}) Train Loss: {avg_loss:.9f}")

        ema_loss = 0.0
        with torch.no_grad():
            rng = torch.Generator().manual_seed(rank)
            ema_loss = diffusion_loss(ema.ema, points[:32].to(device), alphas_cumprod, rng).item()
        if rank == 0:
            print(f"(step={train_steps:07d}) EMA Loss: {ema_loss:.9f}")
            checkpoint = {
                "model": unwrap(model).state_dict(),
                "ema": ema.ema.state_dict(),
                "opt": opt.state_dict(),
                "train_steps": train_steps,
            }
            torch.save(checkpoint, f"{args.results_dir}/{train_steps:07d}.pt")
        dist.barrier()

    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(args.results_dir, "model.pt"))
        torch.save(ema.ema.state_dict(), os.path.join(args.results_dir, "ema.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--results-dir", type=str, default="results")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--global-batch-size", type=int, default=16)
    parser.add_argument("--global-seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--ema-decay", type=float, default=0.9)
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--pretrained", type=str, default=None, help="weights to start from")
    parser.add_argument("--ckpt", type=str, default=None, help="checkpoint to continue from")
    main(parser.parse_args())
