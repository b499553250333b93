"""Train a small vision transformer with optional fp16 mixed precision (``--amp``).

The GradScaler is created with ``enabled=args.amp``: without the flag it passes everything through.
"""
import argparse
import math
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def get_args_parser():
    parser = argparse.ArgumentParser("ViT training", add_help=True)
    parser.add_argument("--batch-size", default=8, type=int, help="images per process")
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--stop-epoch", default=-1, type=int, help="leave early, e.g. at the end of a time slot")
    parser.add_argument("--lr", default=0.08, type=float)
    parser.add_argument("--min-lr", default=1e-3, type=float)
    parser.add_argument("--clip-grad", default=3.0, type=float, help="max norm of the gradient (0 = no clipping)")
    parser.add_argument("--amp", action="store_true", help="fp16 mixed precision")
    parser.add_argument("--output_dir", default="output", help="where checkpoints go")
    parser.add_argument("--resume", default="", help="checkpoint to continue from")
    parser.add_argument("--seed", default=3, type=int)
    return parser


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, img_size=16, patch=4, dim=32, depth=2, heads=4, num_classes=5):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, (img_size // patch) ** 2 + 1, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.size(0), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class Gratings(Dataset):
    """Stripes whose frequency is the class."""

    def __init__(self, n=64, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 5, (n,), generator=g)
        phase = torch.rand(n, 1, 1, 1, generator=g) * math.pi
        grid = torch.linspace(0, math.pi, 16).view(1, 1, 1, 16)
        waves = torch.sin((self.y.view(-1, 1, 1, 1) + 1) * grid + phase)
        self.x = waves + 0.6 * torch.randn(n, 3, 16, 16, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def is_main_process():
    return dist.get_rank() == 0


def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)


def main(args):
    use_cuda = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if use_cuda else "gloo")
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    if use_cuda:
        torch.cuda.set_device(local_rank)
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    torch.manual_seed(args.seed)

    dataset = Gratings()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)

    model = ViT().to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if use_cuda else None)
    model_without_ddp = model.module
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs, eta_min=args.min_lr)
    scaler = GradScaler(device.type, enabled=args.amp)

    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model_without_ddp.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        lr_scheduler.load_state_dict(checkpoint["lr_scheduler"])
        start_epoch = checkpoint["epoch"] + 1
        if args.amp:
            scaler.load_state_dict(checkpoint["scaler"])

    if args.output_dir:
        Path(args.output_dir).mkdir(parents=True, exist_ok=True)
    start = time.time()
    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for it, (images, targets) in enumerate(loader):
            images, targets = images.to(device), targets.to(device)
            with autocast(device.type, dtype=torch.float16, enabled=args.amp):
                outputs = model(images)
                loss = criterion(outputs, targets)

            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if args.clip_grad > 0:
                # the gradients are scaled: bring them back before they are measured
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            scaler.step(optimizer)
            scaler.update()
            if is_main_process():
                print(f"Epoch: [{epoch}]  [{it}/{len(loader)}]  lr: {optimizer.param_groups[0]['lr']:.6f}  "
                      f"loss: {loss.item():.9f}", flush=True)
        lr_scheduler.step()
        if args.output_dir:
            save_on_master({
                "model": model_without_ddp.state_dict(),
                "optimizer": optimizer.state_dict(),
                "lr_scheduler": lr_scheduler.state_dict(),
                "scaler": scaler.state_dict(),
                "epoch": epoch,
                "args": args,
            }, Path(args.output_dir) / "checkpoint.pth")
        if epoch == args.stop_epoch:
            break
    if is_main_process():
        print(f"Training time {time.time() - start:.1f}s")


if __name__ == "__main__":
    main(get_args_parser().parse_args())
