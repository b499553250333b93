"""Character-level LSTM whose gradient norm is watched: it is logged, and steps with a wild norm are counted."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

TEXT = (
    "a process group has a rank and a world size. every rank owns a part of the data, reads its micro-batches, "
    "computes gradients, and meets the others to average them. the gradient norm tells how far the step would "
    "go; clipping keeps a wild step short. the learning rate decides the rest, and the loss goes down. "
) * 2
CHARS = sorted(set(TEXT))
STOI = {ch: i for i, ch in enumerate(CHARS)}


class CharDataset(Dataset):
    def __init__(self, text, block):
        self.ids = torch.tensor([STOI[c] for c in text])
        self.block = block

    def __len__(self):
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, i):
        chunk = self.ids[i * self.block:(i + 1) * self.block + 1]
        return chunk[:-1], chunk[1:]


class CharLSTM(nn.Module):
    def __init__(self, vocab, emb=16, hidden=40):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, batch_first=True)
        self.proj = nn.Linear(hidden, emb)
        self.head = nn.Linear(emb, vocab)

    def forward(self, idx):
        out, _ = self.lstm(self.emb(idx))
        return self.head(torch.tanh(self.proj(out)))


def train(model, dataloader, optimizer, args, epoch, rank, device):
    criterion = nn.CrossEntropyLoss()
    wild = 0
    for step, (xb, yb) in enumerate(dataloader):
        xb, yb = xb.to(device), yb.to(device)
        logits = model(xb)
        loss = criterion(logits.flatten(0, 1), yb.flatten())
        optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if grad_norm > args.clip:
            wild += 1
        optimizer.step()
        if rank == 0:
            print(f"| epoch {epoch} | {step:3d}/{len(dataloader)} | loss {loss.item():.9f} | "
                  f"gnorm {float(grad_norm):.9f} | clipped {wild}")
    return wild


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--block", type=int, default=12)
    parser.add_argument("--bsz", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")
    args = parser.parse_args()

    dist.init_process_group(args.backend)
    rank, local_rank = dist.get_rank(), int(os.environ.get("LOCAL_RANK", "0"))
    device = f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu"
    if device != "cpu":
        torch.cuda.set_device(local_rank)
    torch.manual_seed(100)

    trainset = CharDataset(TEXT, args.block)
    sampler = DistributedSampler(trainset)
    dataloader = DataLoader(trainset, batch_size=args.bsz, sampler=sampler, drop_last=True)

    lstm = CharLSTM(len(CHARS)).to(device)
    ddp_model = DistributedDataParallel(lstm, device_ids=[local_rank] if device != "cpu" else None)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=args.lr, momentum=0.5)
    lr_sched = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    total_wild = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        ddp_model.train()
        total_wild += train(ddp_model, dataloader, optimizer, args, epoch, rank, device)
        lr_sched.step()
    if rank == 0:
        print(f"{total_wild} steps were clipped")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
