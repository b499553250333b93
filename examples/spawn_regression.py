"""Distributed training on one node without a launcher: ``python spawn_regression.py --nprocs 2``."""

import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class TabularDataset(Dataset):
    """Rows with numeric columns, one categorical column, and a noisy non-linear target."""

    def __init__(self, rows=96, numeric=10, categories=12, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.numeric = torch.randn(rows, numeric, generator=gen)
        self.category = torch.randint(0, categories, (rows,), generator=gen)
        offsets = torch.randn(categories, generator=gen)
        self.target = (self.numeric[:, 0] * self.numeric[:, 1] + self.numeric[:, 2].sin() * 2
                       + offsets[self.category] + 0.1 * torch.randn(rows, generator=gen))

    def __len__(self):
        return self.target.numel()

    def __getitem__(self, i):
        return self.numeric[i], self.category[i], self.target[i]


class TabularNet(nn.Module):
    def __init__(self, numeric=10, categories=12, width=48):
        super().__init__()
        self.embedding = nn.Embedding(categories, 8)
        self.input = nn.Linear(numeric + 8, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, 1)

    def forward(self, numeric, category):
        x = torch.cat([numeric, self.embedding(category)], dim=1)
        x = torch.tanh(self.input(x))
        x = x + torch.tanh(self.hidden(self.norm(x)))
        return self.output(x).squeeze(1)


def find_free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ddp_setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
        dist.init_process_group(backend="nccl", rank=rank, world_size=world_size)
    else:
        dist.init_process_group(backend="gloo", rank=rank, world_size=world_size)


def train_worker(rank, world_size, port, args):
    ddp_setup(rank, world_size, port)
    device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(args.seed + rank)  # DDP sends the weights of rank 0 to the others

    dataset = TabularDataset()
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=False, sampler=sampler, drop_last=True)
    model = TabularNet().to(device)
    ddp_model = DDP(model, device_ids=[rank] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=args.lr, momentum=0.9)

    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for numeric, category, target in loader:
            optimizer.zero_grad()
            prediction = ddp_model(numeric.to(device), category.to(device))
            loss = F.mse_loss(prediction, target.to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(ddp_model.parameters(), max_norm=2.5)
            optimizer.step()
            if rank == 0:
                print(f"[rank {rank}] epoch {epoch} step {step} loss={loss.item():.9f}", flush=True)
            step += 1
        dist.barrier()

    if rank == 0:
        torch.save(ddp_model.module.state_dict(), args.save_path)
        print(f"saved weights to {args.save_path}")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nprocs", type=int, default=torch.cuda.device_count() or 2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--save_path", default="tabular.pt")
    args = parser.parse_args()
    mp.spawn(train_worker, args=(args.nprocs, find_free_port(), args), nprocs=args.nprocs, join=True)


if __name__ == "__main__":
    main()
