"""Graph property regression, started by ``srun python slurm_env.py`` or by ``torchrun slurm_env.py``."""

import argparse
import logging
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


def init_distributed_mode(args):
    """Take the ranks from torchrun, or else from SLURM, or else run one process."""
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
        args.local_rank = int(os.environ["LOCAL_RANK"])
    elif "SLURM_PROCID" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
        args.world_size = int(os.environ["SLURM_NTASKS"])
        args.local_rank = int(os.environ.get("SLURM_LOCALID", args.rank % max(torch.cuda.device_count(), 1)))
        if "MASTER_ADDR" not in os.environ:
            nodes = subprocess.check_output(["scontrol", "show", "hostnames", os.environ["SLURM_NODELIST"]])
            os.environ["MASTER_ADDR"] = nodes.decode().split()[0]
        os.environ.setdefault("MASTER_PORT", "29500")
        os.environ["RANK"] = str(args.rank)
        os.environ["WORLD_SIZE"] = str(args.world_size)
        os.environ["LOCAL_RANK"] = str(args.local_rank)
    else:
        args.rank, args.world_size, args.local_rank = 0, 1, 0
        args.distributed = False
        return
    args.distributed = True
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(args.local_rank)
    dist.init_process_group(backend=backend, init_method="env://", world_size=args.world_size, rank=args.rank)
    dist.barrier()


class Molecules(Dataset):
    """Random graphs of 9 nodes with a target that depends on degrees and node types."""

    def __init__(self, n=72, nodes=9, seed=0):
        g = torch.Generator().manual_seed(seed)
        upper = (torch.rand(n, nodes, nodes, generator=g) < 0.3).float().triu(1)
        self.adjacency = upper + upper.transpose(1, 2)
        self.types = torch.randint(0, 5, (n, nodes), generator=g)
        value = torch.randn(5, generator=g)
        self.target = (value[self.types] * self.adjacency.sum(2)).sum(1, keepdim=True) / nodes

    def __len__(self):
        return self.target.size(0)

    def __getitem__(self, index):
        return self.adjacency[index], self.types[index], self.target[index]


class GraphConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.self_loop = nn.Linear(dim, dim)
        self.neighbours = nn.Linear(dim, dim, bias=False)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, adjacency):
        return h + torch.relu(self.norm(self.self_loop(h) + adjacency @ self.neighbours(h)))


class GNN(nn.Module):
    def __init__(self, dim=32, layers=3):
        super().__init__()
        self.node_embedding = nn.Embedding(5, dim)
        self.convs = nn.ModuleList([GraphConv(dim) for _ in range(layers)])
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, 1))

    def forward(self, adjacency, types):
        h = self.node_embedding(types)
        for conv in self.convs:
            h = conv(h, adjacency)
        return self.readout(h.mean(dim=1))


def main():
    parser = argparse.ArgumentParser(description="Graph regression on a SLURM cluster")
    parser.add_argument("--num-epochs", type=int, default=3)
    parser.add_argument("--batch-size-per-gpu", type=int, default=6)
    parser.add_argument("--lr", type=float, default=4e-3, help="scaled linearly with the number of processes")
    parser.add_argument("--clip-value", type=float, default=1.0)
    parser.add_argument("--log-level", default="INFO")
    args = parser.parse_args()
    init_distributed_mode(args)
    logging.basicConfig(level=args.log_level if args.rank == 0 else "ERROR", stream=sys.stdout, format="%(message)s")
    log = logging.getLogger("train")
    log.info("rank %d of %d", args.rank, args.world_size)

    torch.manual_seed(13)
    device = torch.device("cuda", args.local_rank) if torch.cuda.is_available() else torch.device("cpu")
    network = GNN().to(device)
    dataset = Molecules(seed=13)
    if args.distributed:
        sampler = DistributedSampler(dataset)
        network = DDP(network, device_ids=[args.local_rank] if device.type == "cuda" else None)
    else:
        sampler = torch.utils.data.RandomSampler(dataset)
    loader = DataLoader(dataset, args.batch_size_per_gpu, sampler=sampler, drop_last=True)

    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr * args.world_size / 2)
    onecycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr * args.world_size / 2, epochs=args.num_epochs, steps_per_epoch=len(loader))
    huber = nn.SmoothL1Loss()

    for epoch in range(args.num_epochs):
        if args.distributed:
            sampler.set_epoch(epoch)
        network.train()
        epoch_loss = 0.0
        for it, (adjacency, types, target) in enumerate(loader):
            optimizer.zero_grad()
            prediction = network(adjacency.to(device), types.to(device))
            loss = huber(prediction, target.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), args.clip_value)
            optimizer.step()
            onecycle.step()
            epoch_loss += loss.item()
            log.info("epoch %d iter %d loss %.9f lr %.8f", epoch, it, loss.item(), onecycle.get_last_lr()[0])
        log.info("epoch %d mean loss %.9f", epoch, epoch_loss / len(loader))

    if args.distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
