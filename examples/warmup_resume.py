"""Text classification with warm-up per batch and a checkpoint that holds the whole state of the run."""

import argparse
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Reviews(Dataset):
    """Bags of words; the label depends on which words occur."""

    vocabulary = 120

    def __init__(self, count, length=16, seed=0):
        rng = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, self.vocabulary, (count, length), generator=rng)
        polarity = torch.randn(self.vocabulary, generator=torch.Generator().manual_seed(77))
        self.labels = (polarity[self.tokens].sum(dim=1) > 0).long()

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, item):
        return {"input_ids": self.tokens[item], "label": self.labels[item]}


class Classifier(nn.Module):
    def __init__(self, vocabulary, dim=40):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocabulary, dim, mode="mean")
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, 2)

    def forward(self, input_ids):
        return self.fc2(torch.relu(self.fc1(self.norm(self.embed(input_ids)))))


def warmup_then_inverse_sqrt(warmup):
    def factor(step):
        step += 1
        return min(step / warmup, (warmup / step) ** 0.5)
    return factor


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = torch.zeros(2, device=device)
    total_loss = torch.zeros(1, device=device)
    for batch in loader:
        logits = model(batch["input_ids"].to(device))
        labels = batch["label"].to(device)
        total_loss += nn.functional.cross_entropy(logits, labels, reduction="sum")
        right[0] += (logits.argmax(-1) == labels).sum()
        right[1] += labels.numel()
    dist.all_reduce(right)
    dist.all_reduce(total_loss)
    model.train()
    return (total_loss / right[1]).item(), (right[0] / right[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--clip", type=float, default=0.8)
    p.add_argument("--checkpoint", type=str, default="checkpoints/last.pt")
    p.add_argument("--resume", type=str, default=None)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()

    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend=backend)
    rank = dist.get_rank()
    local_rank = int(os.environ["LOCAL_RANK"])
    if backend == "nccl":
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if backend == "nccl" else torch.device("cpu")
    torch.manual_seed(args.seed)

    train_set, test_set = Reviews(96, seed=1), Reviews(32, seed=2)
    train_sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
    train_loader = DataLoader(train_set, args.batch_size, sampler=train_sampler)
    test_loader = DataLoader(test_set, args.batch_size, sampler=DistributedSampler(test_set, shuffle=False))

    model = Classifier(Reviews.vocabulary).to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if backend == "nccl" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = LambdaLR(optimizer, lr_lambda=warmup_then_inverse_sqrt(args.warmup))

    first_epoch, best = 0, float("inf")
    if args.resume is not None and os.path.isfile(args.resume):
        # every process reads the file onto its own device
        ckpt = torch.load(args.resume, map_location=device)
        model.module.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        first_epoch = ckpt["epoch"] + 1
        best = ckpt["best"]
        if rank == 0:
            print(f"resumed from {args.resume} at epoch {first_epoch}, best {best:.4f}")

    for epoch in range(first_epoch, args.epochs):
        train_sampler.set_epoch(epoch)
        for step, batch in enumerate(train_loader):
            logits = model(batch["input_ids"].to(device))
            loss = nn.functional.cross_entropy(logits, batch["label"].to(device))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            if rank == 0:
                record = {"epoch": epoch, "step": step, "loss": loss.item(), "lr": scheduler.get_last_lr()[0]}
                sys.stdout.write(json.dumps(record) + "\n")

        eval_loss, accuracy = evaluate(model, test_loader, device)
        best = min(best, eval_loss)
        if rank == 0:
            print(json.dumps({"epoch": epoch, "eval_loss": eval_loss, "accuracy": accuracy, "best": best}))
            os.makedirs(os.path.dirname(args.checkpoint) or ".", exist_ok=True)
            torch.save(
                {
                    "model": model.module.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "epoch": epoch,
                    "best": best,
                },
                args.checkpoint,
            )
        dist.barrier()

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
