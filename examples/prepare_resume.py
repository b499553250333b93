"""Digits from noisy strokes in bfloat16; one helper wraps the model and makes its optimizer, its caller resumes."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Strokes(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.body(x))


def prepare(model, device, lr):
    """Wrap the model and make its optimizer."""
    model = model.to(device)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    return model, optimizer


def dataset(count, seed):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(4, 20, generator=torch.Generator().manual_seed(5))
    labels = torch.randint(0, 4, (count,), generator=g)
    return TensorDataset(centers[labels] + torch.randn(count, 20, generator=g), labels)


def evaluate(model, loader, device):
    """The mean loss of this rank's part, in float32."""
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(x.to(device)), y.to(device)) for x, y in loader]
    model.train()
    return torch.stack(losses).mean()


def train_step(model, batch, optimizer, device):
    x, y = batch
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--resume", default="")
    args = parser.parse_args()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(3)
    model, optimizer = prepare(Strokes(), device, args.lr)
    start = 0
    if args.resume and os.path.isfile(args.resume):
        state = torch.load(args.resume, map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    train_set, test_set = dataset(96, 1), dataset(32, 2)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=8, sampler=sampler)
    test_loader = DataLoader(test_set, batch_size=8, sampler=DistributedSampler(test_set, shuffle=False))
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        for step, batch in enumerate(loader):
            loss = train_step(model, batch, optimizer, device)
            if rank == 0:
                print(f"epoch {epoch:2d} step {step:3d} | loss {loss:.9f}")
        test_loss = evaluate(model, test_loader, device)
        dist.all_reduce(test_loss)
        if rank == 0:
            print(f"====> Epoch {epoch} average loss: {test_loss.item() / dist.get_world_size():.9f}")
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, "strokes.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
